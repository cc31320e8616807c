// k-NN graphs for Python.
#include "nearwise/graph/knn_graph.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>

#include "bindings.h"
#include "results.h"

namespace nearwise::python {
namespace {

using Provenance = std::map<std::string, std::string>;
// round, updates, recall
using Round = std::tuple<std::uint64_t, std::uint64_t, Estimate>;
// method, recall, whether the target was reached, rounds
using Report = std::tuple<std::string, Estimate, bool, std::vector<Round>>;
// (ids, distances), metric, report
using Graph = std::tuple<NumpyNeighbors, std::string, Report>;
// As Python passes it back: ids, distances, metric, report
using GivenGraph = std::tuple<NumpyMatrix<const Id>, NumpyMatrix<const float>, std::string, Report>;

RecallEstimate from_python(const Estimate& recall) {
  return {.value = std::get<0>(recall),
          .low = std::get<1>(recall),
          .high = std::get<2>(recall),
          .rows = std::get<3>(recall)};
}

Graph to_python(KnnGraph&& graph) {
  std::vector<Round> rounds;
  for (const GraphRound& round : graph.report.rounds)
    rounds.emplace_back(round.round, round.updates, recall_fields(round.recall));
  return {to_numpy(std::move(graph.neighbors)),
          std::string(name(graph.metric)),
          {std::string(name(graph.report.method)), recall_fields(graph.report.recall), graph.report.reached,
           std::move(rounds)}};
}

KnnGraph to_graph(const Context& context, const GivenGraph& given) {
  const auto& [ids, distances, metric, report] = given;
  KnnGraph graph{
      .neighbors = to_neighbors(context, ids, distances),
      .metric = parse_metric(metric),
      .report = {.method = std::get<0>(report) == "exact" ? GraphMethod::exact : GraphMethod::nn_descent,
                 .recall = from_python(std::get<1>(report)),
                 .reached = std::get<2>(report),
                 .rounds = {}}};
  for (const auto& [round, updates, recall] : std::get<3>(report))
    graph.report.rounds.push_back({.round = round, .updates = updates, .recall = from_python(recall)});
  return graph;
}

// make(context, rows) returns the graph.
Graph made(const BorrowedRows& rows, const Settings& settings, nb::handle progress,
           const std::function<KnnGraph(const Context&, const RowsView&)>& make) {
  return to_python(result_of(settings, progress, multiplications(rows.view(), rows.view()),
                             [&](const Context& own) { return make(own, rows.view()); }));
}

Graph build(const BorrowedRows& rows, std::uint64_t degree, const std::string& metric, double target_recall,
            const Settings& settings, nb::handle progress) {
  const KnnGraphOptions options{
      .degree = degree, .metric = parse_metric(metric), .target_recall = target_recall};
  return made(rows, settings, progress,
              [&](const Context& own, const RowsView& view) { return build_knn_graph(own, view, options); });
}

Graph merge(const BorrowedRows& rows, const GivenGraph& left, const GivenGraph& right, double target_recall,
            const Settings& settings, nb::handle progress) {
  return made(rows, settings, progress, [&](const Context& own, const RowsView& view) {
    return merge_knn_graphs(own, view, to_graph(own, left), to_graph(own, right),
                            {.target_recall = target_recall});
  });
}

Graph add(const BorrowedRows& rows, const GivenGraph& given, double target_recall, const Settings& settings,
          nb::handle progress) {
  return made(rows, settings, progress, [&](const Context& own, const RowsView& view) {
    return add_to_knn_graph(own, view, to_graph(own, given), {.target_recall = target_recall});
  });
}

Graph remove(const BorrowedRows& rows, const GivenGraph& given,
             const nb::ndarray<nb::numpy, const Id, nb::ndim<1>, nb::c_contig>& ids, double target_recall,
             const Settings& settings, nb::handle progress) {
  const std::vector<Id> removed(ids.data(), ids.data() + ids.size());
  return made(rows, settings, progress, [&](const Context& own, const RowsView& view) {
    return remove_from_knn_graph(own, view, to_graph(own, given), removed, {.target_recall = target_recall});
  });
}

void validate(const GivenGraph& graph) {
  run_by_size(context_for({}), nb::none(), graph_steps(std::get<0>(graph)),
              [&](const Context& own) { to_graph(own, graph).validate(); });
}

void save_graph(const std::filesystem::path& path, const GivenGraph& given, const Provenance& provenance) {
  run(context_for({}), nb::none(), [&](const Context& own) { save(to_graph(own, given), path, provenance); });
}

Graph load_graph(const std::filesystem::path& path) {
  return to_python(result_of([&] { return load_knn_graph(path); }));
}

Estimate measure(const BorrowedRows& rows, const NumpyMatrix<const Id>& ids, const std::string& metric,
                 std::uint64_t sample, const Settings& settings, nb::handle progress) {
  const Metric parsed = parse_metric(metric);
  const auto limit = sample == 0 ? std::nullopt : std::optional<std::size_t>(sample);
  return recall_fields(
      result_of(settings, progress, multiplications(rows.view(), rows.view()), [&](const Context& own) {
        return measure_recall(own, rows.view(), Neighbors{to_matrix(own, ids), {}}, parsed, limit);
      }));
}

}  // namespace

void bind_knn_graph(nb::module_& module) {
  module.def("build_knn_graph", build, nb::arg("rows"), nb::arg("degree"), nb::arg("metric"),
             nb::arg("target_recall"), nb::arg("settings"), nb::arg("progress").none(),
             "((ids, distances), metric, (method, recall, reached, rounds))");
  module.def("merge_knn_graphs", merge, nb::arg("rows"), nb::arg("left"), nb::arg("right"),
             nb::arg("target_recall"), nb::arg("settings"), nb::arg("progress").none(),
             "As build_knn_graph.");
  module.def("add_to_knn_graph", add, nb::arg("rows"), nb::arg("graph"), nb::arg("target_recall"),
             nb::arg("settings"), nb::arg("progress").none(), "As build_knn_graph.");
  module.def("remove_from_knn_graph", remove, nb::arg("rows"), nb::arg("graph"), nb::arg("ids").noconvert(),
             nb::arg("target_recall"), nb::arg("settings"), nb::arg("progress").none(),
             "As build_knn_graph.");
  module.def("validate_knn_graph", validate, nb::arg("graph"));
  module.def("save_knn_graph", save_graph, nb::arg("path"), nb::arg("graph"), nb::arg("provenance"));
  module.def("load_knn_graph", load_graph, nb::arg("path"));
  module.def("measure_recall", measure, nb::arg("rows"), nb::arg("ids"), nb::arg("metric"), nb::arg("sample"),
             nb::arg("settings"), nb::arg("progress").none(), "value, low, high, rows");
}

}  // namespace nearwise::python
