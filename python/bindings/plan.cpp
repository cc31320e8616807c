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
class PlannedGraph {
 public:
  PlannedGraph(const std::filesystem::path& vectors, const std::filesystem::path& work,
               const std::filesystem::path& output, std::uint64_t degree, const std::string& metric,
               double recall, const std::map<std::string, std::string>& provenance, std::uint64_t seed,
               int threads, std::uint64_t memory_limit, const std::string& isa)
      : seed_(seed), threads_(threads), memory_limit_(memory_limit), isa_(isa) {
    const GraphPlanFiles files = {.vectors = vectors, .work = work, .output = output};
    const GraphPlanOptions options = {
        .degree = degree, .metric = parse_metric(metric), .recall = recall, .provenance = provenance};
    run(context(), nb::none(), [&](const Context& own) { plan_.emplace(plan_graph(own, files, options)); });
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

  const std::uint64_t seed_;
  const int threads_;
  const std::uint64_t memory_limit_;
  const std::string isa_;
  std::optional<Plan> plan_;
};

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<PlannedGraph>(module, "PlannedGraph", "A plan of a graph over files.")
      .def(nb::init<const std::filesystem::path&, const std::filesystem::path&, const std::filesystem::path&,
                    std::uint64_t, const std::string&, double, const std::map<std::string, std::string>&,
                    std::uint64_t, int, std::uint64_t, const std::string&>(),
           nb::arg("vectors"), nb::arg("work"), nb::arg("output"), nb::arg("degree"), nb::arg("metric"),
           nb::arg("recall"), nb::arg("provenance"), nb::arg("seed"), nb::arg("threads"),
           nb::arg("memory_limit"), nb::arg("isa"))
      .def("tasks", &PlannedGraph::tasks,
           "name, after, bytes read, written and of memory, seconds, if_needed")
      .def("run_task", &PlannedGraph::run_task, nb::arg("task"))
      .def("run", &PlannedGraph::run_all, nb::arg("progress").none())
      .def(
          "is_done",
          [](const PlannedGraph& self, const std::string& task) { return self.plan().is_done(task); },
          nb::arg("task"))
      .def("check_disk", [](const PlannedGraph& self) { self.plan().check_disk(); })
      .def("memory_bytes", [](const PlannedGraph& self) { return self.plan().memory_bytes(); })
      .def("disk_bytes", [](const PlannedGraph& self) { return self.plan().disk_bytes(); })
      .def("seconds", [](const PlannedGraph& self) { return self.plan().seconds(); });
}

}  // namespace nearwise::python
