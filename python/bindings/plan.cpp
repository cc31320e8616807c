// Plans of work over files for Python.
#include "nearwise/plan.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "dedup.h"
#include "nearwise/plan_join.h"

namespace nearwise::python {
namespace {

// name, after, read, written and memory bytes, seconds, whether it may not be needed
using Task = std::tuple<std::string, std::vector<std::string>, std::uint64_t, std::uint64_t, std::uint64_t,
                        double, bool>;

std::vector<Task> tasks_of(const Plan& plan) {
  std::vector<Task> all;
  for (const PlannedTask& task : plan.tasks())
    all.emplace_back(task.name, task.after, task.read_bytes, task.written_bytes, task.memory_bytes,
                     task.seconds, task.if_needed);
  return all;
}

std::string run_task(const Plan& plan, const std::string& task, const Settings& settings) {
  TaskOutcome outcome = TaskOutcome::done;
  run(context_for(settings), nb::none(), [&](const Context& own) { outcome = plan.run_task(own, task); });
  return std::string(name(outcome));
}

// Of every task that was looked at, in order: its name and its outcome.
std::vector<std::pair<std::string, std::string>> run_all(const Plan& plan, const Settings& settings,
                                                         nb::handle progress) {
  std::vector<std::pair<std::string, std::string>> outcomes;
  run(context_for(settings), progress, [&](const Context& own) {
    plan.run(own, [&](const PlannedTask& task, TaskOutcome outcome) {
      outcomes.emplace_back(task.name, name(outcome));
    });
  });
  return outcomes;
}

// method, partitions, predicted copies and comparisons, and those found
using Report =
    std::tuple<std::string, std::size_t, double, double, std::optional<double>, std::optional<double>>;

Report join_report(const Plan& plan) {
  const JoinPlanReport report = plan.join_report();
  return {std::string(name(report.method)), report.partitions, report.predicted_copies,
          report.predicted_comparisons,     report.copies,     report.comparisons};
}

template <typename Make>
Plan made(const Settings& settings, const Make& make) {
  std::optional<Plan> plan;
  run(context_for(settings), nb::none(), [&](const Context& own) { plan.emplace(make(own)); });
  return std::move(*plan);
}

using Path = std::filesystem::path;
using Texts = std::map<std::string, std::string>;

Plan make_graph_plan(const Path& vectors, const Path& work, const Path& output, std::uint64_t degree,
                     const std::string& metric, double target_recall, const std::string& method,
                     const Texts& provenance, const Settings& settings) {
  const GraphPlanOptions options = {.degree = degree,
                                    .metric = parse_metric(metric),
                                    .target_recall = target_recall,
                                    .method = parse_graph_plan_method(method),
                                    .provenance = provenance};
  return made(settings, [&](const Context& own) {
    return plan_graph(own, {vectors, work, output}, options);
  });
}

Plan make_index_plan(const Path& vectors, const Path& work, const Path& output, const std::string& codec,
                     std::uint64_t lists, std::uint64_t code_bytes, std::uint64_t bits,
                     const std::string& metric, std::uint64_t iterations, std::uint64_t training_rows,
                     const std::string& vector_storage, double target_recall, const Texts& provenance,
                     const Settings& settings) {
  IndexPlanOptions options = {
      .index = {.metric = parse_metric(metric),
                .lists = optional_of(lists),
                .iterations = iterations,
                .training_rows = optional_of(training_rows),
                .encoding = Pq{.code_bytes = optional_of(code_bytes), .bits = static_cast<unsigned>(bits)},
                .vectors = parse_vector_storage(vector_storage)},
      .calibration = {.target_recall = target_recall},
      .provenance = provenance};
  if (codec == "flat") options.index.encoding = Flat{};
  if (codec == "lsq")
    options.index.encoding = Lsq{.code_bytes = code_bytes != 0 ? code_bytes : Lsq().code_bytes};
  return made(settings, [&](const Context& own) {
    return plan_index(own, {vectors, work, output}, options);
  });
}

Plan make_graph_index_plan(const Path& vectors, const Path& work, const Path& output,
                           const std::string& metric, std::uint64_t degree, double graph_recall,
                           double target_recall, const Texts& provenance, const Settings& settings) {
  const GraphIndexPlanOptions options = {
      .index = {.metric = parse_metric(metric), .degree = degree, .graph_recall = graph_recall},
      .calibration = {.target_recall = target_recall},
      .provenance = provenance};
  return made(settings, [&](const Context& own) {
    return plan_graph_index(own, {vectors, work, output}, options);
  });
}

Plan make_join_plan(const Path& vectors, const Path& work, const Path& output, const std::string& metric,
                    float threshold, const std::string& method, const Texts& provenance,
                    const Settings& settings) {
  const JoinPlanOptions options = {
      .metric = parse_metric(metric), .provenance = provenance, .method = parse_join_method(method)};
  return made(settings, [&](const Context& own) {
    return plan_threshold_join(own, {vectors, work, output}, threshold, options);
  });
}

Plan make_dedup_plan(const Path& vectors, const Path& work, const Path& output, const std::string& metric,
                     float threshold, bool keeps_medoids, const std::optional<Scores>& scores, bool connected,
                     const std::string& method, const Texts& provenance, const Settings& settings) {
  const DedupPlanOptions options = {.dedup = dedup_options(metric, keeps_medoids, scores, connected),
                                    .provenance = provenance,
                                    .method = parse_join_method(method)};
  return made(settings, [&](const Context& own) {
    return plan_dedup(own, {vectors, work, output}, threshold, options);
  });
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<Plan>(module, "Plan", "Work over files, as tasks.")
      .def("tasks", tasks_of, "name, after, read_bytes, written_bytes, memory_bytes, seconds, if_needed")
      .def("run_task", run_task, nb::arg("task"), nb::arg("settings"))
      .def("run", run_all, nb::arg("settings"), nb::arg("progress").none())
      .def(
          "is_done", [](const Plan& plan, const std::string& task) { return plan.is_done(task); },
          nb::arg("task"))
      .def("join_report", join_report, "method, partitions, predicted copies and comparisons, those found")
      .def("check_disk", &Plan::check_disk)
      .def("remove_work", &Plan::remove_work)
      .def("memory_bytes", &Plan::memory_bytes)
      .def("disk_bytes", &Plan::disk_bytes)
      .def("seconds", &Plan::seconds);
  module.def("plan_graph", make_graph_plan, nb::arg("vectors"), nb::arg("work"), nb::arg("output"),
             nb::arg("degree"), nb::arg("metric"), nb::arg("target_recall"), nb::arg("method"),
             nb::arg("provenance"), nb::arg("settings"));
  module.def("plan_index", make_index_plan, nb::arg("vectors"), nb::arg("work"), nb::arg("output"),
             nb::arg("codec"), nb::arg("lists"), nb::arg("code_bytes"), nb::arg("bits"), nb::arg("metric"),
             nb::arg("iterations"), nb::arg("training_rows"), nb::arg("vector_storage"),
             nb::arg("target_recall"), nb::arg("provenance"), nb::arg("settings"));
  module.def("plan_graph_index", make_graph_index_plan, nb::arg("vectors"), nb::arg("work"),
             nb::arg("output"), nb::arg("metric"), nb::arg("degree"), nb::arg("graph_recall"),
             nb::arg("target_recall"), nb::arg("provenance"), nb::arg("settings"));
  module.def("plan_threshold_join", make_join_plan, nb::arg("vectors"), nb::arg("work"), nb::arg("output"),
             nb::arg("metric"), nb::arg("threshold"), nb::arg("method"), nb::arg("provenance"),
             nb::arg("settings"));
  module.def("plan_dedup", make_dedup_plan, nb::arg("vectors"), nb::arg("work"), nb::arg("output"),
             nb::arg("metric"), nb::arg("threshold"), nb::arg("keeps_medoids"), nb::arg("scores").none(),
             nb::arg("connected"), nb::arg("method"), nb::arg("provenance"), nb::arg("settings"));
}

}  // namespace nearwise::python
