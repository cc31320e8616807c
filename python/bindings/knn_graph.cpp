// Graphs of nearest neighbours for Python.
#include "nearwise/knn_graph.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>

#include "bindings.h"
#include "nearwise/error.h"

namespace nearwise::python {
namespace {

using Provenance = std::map<std::string, std::string>;
// value, low, high, rows
using Estimate = std::tuple<double, double, double, std::uint64_t>;
// round, updates, recall
using Round = std::tuple<std::uint64_t, std::uint64_t, Estimate>;
// method, recall, whether it was reached, rounds
using Report = std::tuple<std::string, Estimate, bool, std::vector<Round>>;
// (ids, distances), metric, report
using Graph = std::tuple<NumpyNeighbors, std::string, Report>;
// The same, as it is handed back: ids, distances, metric, report
using GivenGraph = std::tuple<NumpyMatrix<const Id>, NumpyMatrix<const float>, std::string, Report>;

Estimate to_python(const RecallEstimate& recall) {
  return {recall.value, recall.low, recall.high, recall.rows};
}

RecallEstimate from_python(const Estimate& recall) {
  return {.value = std::get<0>(recall),
          .low = std::get<1>(recall),
          .high = std::get<2>(recall),
          .rows = std::get<3>(recall)};
}

Graph to_python(KnnGraph&& graph) {
  std::vector<Round> rounds;
  for (const GraphRound& round : graph.report.rounds)
    rounds.emplace_back(round.round, round.updates, to_python(round.recall));
  return {to_numpy(std::move(graph.neighbors)),
          std::string(name(graph.metric)),
          {std::string(name(graph.report.method)), to_python(graph.report.recall), graph.report.reached,
           std::move(rounds)}};
}

KnnGraph to_graph(const NumpyMatrix<const Id>& ids, const NumpyMatrix<const float>& distances,
                  const std::string& metric, const Report& report) {
  KnnGraph graph{
      .neighbors = to_neighbors(ids, distances),
      .metric = parse_metric(metric),
      .report = {.method = std::get<0>(report) == "exact" ? GraphMethod::exact : GraphMethod::nn_descent,
                 .recall = from_python(std::get<1>(report)),
                 .reached = std::get<2>(report),
                 .rounds = {}}};
  for (const auto& [round, updates, recall] : std::get<3>(report))
    graph.report.rounds.push_back({.round = round, .updates = updates, .recall = from_python(recall)});
  return graph;
}

Graph build(nb::handle rows, const std::string& rows_type, std::uint64_t degree, const std::string& metric,
            double recall, std::uint64_t seed, const std::string& device, int threads,
            std::uint64_t memory_limit, const std::string& isa, nb::handle progress) {
  const KnnGraphOptions options{.degree = degree, .metric = parse_metric(metric), .target_recall = recall};
  const Context context = context_for(device, threads, memory_limit, isa, seed);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<KnnGraph> graph;
  run_by_size(context, progress, multiplications(borrowed.view(), borrowed.view()),
              [&](const Context& own) { graph = build_knn_graph(own, borrowed.view(), options); });
  return to_python(std::move(*graph));
}

KnnGraph to_graph(const GivenGraph& given) {
  return to_graph(std::get<0>(given), std::get<1>(given), std::get<2>(given), std::get<3>(given));
}

// change(context, rows): the changed graph.
Graph changed(nb::handle rows, const std::string& rows_type, const Context& context, nb::handle progress,
              const std::function<KnnGraph(const Context&, const RowsView&)>& change) {
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  std::optional<KnnGraph> graph;
  run_by_size(context, progress, multiplications(borrowed.view(), borrowed.view()),
              [&](const Context& own) { graph = change(own, borrowed.view()); });
  return to_python(std::move(*graph));
}

Graph merge(nb::handle rows, const std::string& rows_type, const GivenGraph& left, const GivenGraph& right,
            double recall, std::uint64_t seed, const std::string& device, int threads,
            std::uint64_t memory_limit, const std::string& isa, nb::handle progress) {
  const KnnGraph left_graph = to_graph(left);
  const KnnGraph right_graph = to_graph(right);
  return changed(rows, rows_type, context_for(device, threads, memory_limit, isa, seed), progress,
                 [&](const Context& own, const RowsView& view) {
                   return merge_knn_graphs(own, view, left_graph, right_graph, {.target_recall = recall});
                 });
}

Graph add(nb::handle rows, const std::string& rows_type, const GivenGraph& given, double recall,
          std::uint64_t seed, const std::string& device, int threads, std::uint64_t memory_limit,
          const std::string& isa, nb::handle progress) {
  const KnnGraph graph = to_graph(given);
  return changed(rows, rows_type, context_for(device, threads, memory_limit, isa, seed), progress,
                 [&](const Context& own, const RowsView& view) {
                   return add_to_knn_graph(own, view, graph, {.target_recall = recall});
                 });
}

Graph remove(nb::handle rows, const std::string& rows_type, const GivenGraph& given,
             const nb::ndarray<nb::numpy, const Id, nb::ndim<1>, nb::c_contig>& ids, double recall,
             std::uint64_t seed, const std::string& device, int threads, std::uint64_t memory_limit,
             const std::string& isa, nb::handle progress) {
  const KnnGraph graph = to_graph(given);
  const std::vector<Id> removed(ids.data(), ids.data() + ids.size());
  return changed(rows, rows_type, context_for(device, threads, memory_limit, isa, seed), progress,
                 [&](const Context& own, const RowsView& view) {
                   return remove_from_knn_graph(own, view, graph, removed, {.target_recall = recall});
                 });
}

void validate(const NumpyMatrix<const Id>& ids, const NumpyMatrix<const float>& distances,
              const std::string& metric, const Report& report) {
  to_graph(ids, distances, metric, report).validate();
}

void save_graph(const std::filesystem::path& path, const NumpyMatrix<const Id>& ids,
                const NumpyMatrix<const float>& distances, const std::string& metric, const Report& report,
                const Provenance& provenance) {
  const KnnGraph graph = to_graph(ids, distances, metric, report);
  const nb::gil_scoped_release unlocked;
  save(graph, path, provenance);
}

Graph load_graph(const std::filesystem::path& path) {
  std::optional<KnnGraph> graph;
  {
    const nb::gil_scoped_release unlocked;
    graph = load_knn_graph(path);
  }
  return to_python(std::move(*graph));
}

Estimate measure(nb::handle rows, const std::string& rows_type, const NumpyMatrix<const Id>& ids,
                 const NumpyMatrix<const float>& distances, const std::string& metric, std::uint64_t sample,
                 std::uint64_t seed, const std::string& device, int threads, std::uint64_t memory_limit,
                 const std::string& isa, nb::handle progress) {
  const Context context = context_for(device, threads, memory_limit, isa, seed);
  const BorrowedRows borrowed(rows, parse_element_type(rows_type), "rows");
  const Neighbors neighbors = to_neighbors(ids, distances);
  const Metric parsed = parse_metric(metric);
  RecallEstimate recall;
  run_by_size(context, progress, multiplications(borrowed.view(), borrowed.view()), [&](const Context& own) {
    recall = measure_recall(own, borrowed.view(), neighbors, parsed,
                            sample == 0 ? std::nullopt : std::optional<std::size_t>(sample));
  });
  return to_python(recall);
}

}  // namespace

void bind_knn_graph(nb::module_& module) {
  module.def("build_knn_graph", build, nb::arg("rows"), nb::arg("rows_type"), nb::arg("degree"),
             nb::arg("metric"), nb::arg("recall"), nb::arg("seed"), nb::arg("device"), nb::arg("threads"),
             nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "((ids, distances), metric, (method, recall, reached, rounds))");
  module.def("merge_knn_graphs", merge, nb::arg("rows"), nb::arg("rows_type"), nb::arg("left"),
             nb::arg("right"), nb::arg("recall"), nb::arg("seed"), nb::arg("device"), nb::arg("threads"),
             nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(), "As build_knn_graph.");
  module.def("add_to_knn_graph", add, nb::arg("rows"), nb::arg("rows_type"), nb::arg("graph"),
             nb::arg("recall"), nb::arg("seed"), nb::arg("device"), nb::arg("threads"),
             nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(), "As build_knn_graph.");
  module.def("remove_from_knn_graph", remove, nb::arg("rows"), nb::arg("rows_type"), nb::arg("graph"),
             nb::arg("ids").noconvert(), nb::arg("recall"), nb::arg("seed"), nb::arg("device"),
             nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "As build_knn_graph.");
  module.def("validate_knn_graph", validate, nb::arg("ids"), nb::arg("distances"), nb::arg("metric"),
             nb::arg("report"));
  module.def("save_knn_graph", save_graph, nb::arg("path"), nb::arg("ids"), nb::arg("distances"),
             nb::arg("metric"), nb::arg("report"), nb::arg("provenance"));
  module.def("load_knn_graph", load_graph, nb::arg("path"));
  module.def("measure_recall", measure, nb::arg("rows"), nb::arg("rows_type"), nb::arg("ids"),
             nb::arg("distances"), nb::arg("metric"), nb::arg("sample"), nb::arg("seed"), nb::arg("device"),
             nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("progress").none(),
             "value, low, high, rows");
}

}  // namespace nearwise::python
