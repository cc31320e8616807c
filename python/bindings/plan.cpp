// Plans of work over files for Python.
#include "nearwise/plan.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>

#include "bindings.h"

namespace nearwise::python {
namespace {

// name, after, read, written and memory bytes, seconds, whether it may not be needed
using Task = std::tuple<std::string, std::vector<std::string>, std::uint64_t, std::uint64_t, std::uint64_t,
                        double, bool>;

// A plan, and where its tasks run. A call has a context of its own: two at once do not share a memory limit.
class Planned {
 public:
  template <typename Make>
  Planned(std::uint64_t seed, int threads, std::uint64_t memory_limit, std::string isa, const Make& make)
      : seed_(seed), threads_(threads), memory_limit_(memory_limit), isa_(std::move(isa)) {
    python::run(context(), nb::none(), [&](const Context& own) { plan_.emplace(make(own)); });
  }

  std::vector<Task> tasks() const {
    std::vector<Task> all;
    for (const PlannedTask& task : plan_->tasks())
      all.emplace_back(task.name, task.after, task.read_bytes, task.written_bytes, task.memory_bytes,
                       task.seconds, task.if_needed);
    return all;
  }

  std::string run_task(const std::string& task) const {
    TaskOutcome outcome = TaskOutcome::done;
    run(context(), nb::none(), [&](const Context& own) { outcome = plan_->run_task(own, task); });
    return std::string(name(outcome));
  }

  void run_all(nb::handle progress) const {
    run(context(), progress, [&](const Context& own) { plan_->run(own); });
  }

  const Plan& plan() const { return *plan_; }

 private:
  Context context() const { return context_for("cpu", threads_, memory_limit_, isa_, seed_); }

  std::uint64_t seed_;
  int threads_;
  std::uint64_t memory_limit_;
  std::string isa_;
  std::optional<Plan> plan_;
};

using Path = std::filesystem::path;
using Texts = std::map<std::string, std::string>;

Planned planned_graph(const Path& vectors, const Path& work, const Path& output, std::uint64_t degree,
                      const std::string& metric, double recall, const std::string& way,
                      const Texts& provenance, std::uint64_t seed, int threads, std::uint64_t memory_limit,
                      const std::string& isa) {
  const GraphPlanOptions options = {.degree = degree,
                                    .metric = parse_metric(metric),
                                    .target_recall = recall,
                                    .method = parse_graph_plan_method(way),
                                    .provenance = provenance};
  return {seed, threads, memory_limit, isa, [&](const Context& own) {
            return plan_graph(own, {vectors, work, output}, options);
          }};
}

Planned planned_index(const Path& vectors, const Path& work, const Path& output, const std::string& codec,
                      std::uint64_t lists, std::uint64_t code_bytes, std::uint64_t bits,
                      const std::string& metric, std::uint64_t iterations, std::uint64_t rows_per_list,
                      double recall, const Texts& provenance, std::uint64_t seed, int threads,
                      std::uint64_t memory_limit, const std::string& isa) {
  IndexPlanOptions options = {
      .training = IvfPqOptions{.code_bytes = code_bytes, .bits = static_cast<unsigned>(bits)},
      .measure = {.recall = recall},
      .provenance = provenance};
  if (codec == "flat") options.training = IvfFlatOptions();
  if (codec == "lsq")
    options.training = IvfLsqOptions{.code_bytes = code_bytes != 0 ? code_bytes : IvfLsqOptions().code_bytes};
  const auto give_common = [&](auto& of) {
    of.metric = parse_metric(metric);
    of.lists = lists;
    of.iterations = iterations;
    of.rows_per_list = rows_per_list;
  };
  std::visit(give_common, options.training);
  return {seed, threads, memory_limit, isa, [&](const Context& own) {
            return plan_index(own, {vectors, work, output}, options);
          }};
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<Planned>(module, "Planned", "A plan of work over files.")
      .def("tasks", &Planned::tasks, "name, after, bytes read, written and of memory, seconds, if_needed")
      .def("run_task", &Planned::run_task, nb::arg("task"))
      .def("run", &Planned::run_all, nb::arg("progress").none())
      .def(
          "is_done", [](const Planned& self, const std::string& task) { return self.plan().is_done(task); },
          nb::arg("task"))
      .def("check_disk", [](const Planned& self) { self.plan().check_disk(); })
      .def("remove_work", [](const Planned& self) { return self.plan().remove_work(); })
      .def("memory_bytes", [](const Planned& self) { return self.plan().memory_bytes(); })
      .def("disk_bytes", [](const Planned& self) { return self.plan().disk_bytes(); })
      .def("seconds", [](const Planned& self) { return self.plan().seconds(); });
  module.def("planned_graph", &planned_graph, nb::arg("vectors"), nb::arg("work"), nb::arg("output"),
             nb::arg("degree"), nb::arg("metric"), nb::arg("recall"), nb::arg("way"), nb::arg("provenance"),
             nb::arg("seed"), nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"));
  module.def("planned_index", &planned_index, nb::arg("vectors"), nb::arg("work"), nb::arg("output"),
             nb::arg("codec"), nb::arg("lists"), nb::arg("code_bytes"), nb::arg("bits"), nb::arg("metric"),
             nb::arg("iterations"), nb::arg("rows_per_list"), nb::arg("recall"), nb::arg("provenance"),
             nb::arg("seed"), nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"));
}

}  // namespace nearwise::python
