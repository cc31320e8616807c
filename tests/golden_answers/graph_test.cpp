// Graphs of nearest neighbours: built, changed, measured, saved.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/graph/knn_graph.h"
#include "support/change_cases.h"

namespace nearwise::golden {
namespace {

using support::Rows;
using testing_io::TemporaryFolder;

void add_recall(Digest& digest, const RecallEstimate& recall) {
  digest.add(recall.value);
  digest.add(recall.low);
  digest.add(recall.high);
  digest.add(recall.rows);
}

void add_graph(Digest& digest, const KnnGraph& graph) {
  digest.add(graph.neighbors);
  digest.add(static_cast<int>(graph.metric));
  digest.add(static_cast<int>(graph.report.method));
  digest.add(graph.report.reached);
  add_recall(digest, graph.report.recall);
  for (const GraphRound& round : graph.report.rounds) {
    digest.add(round.round);
    digest.add(round.updates);
    add_recall(digest, round.recall);
  }
}

void expect_graph(const std::string& name, const KnnGraph& graph) {
  expect(name, [&](Digest& digest) { add_graph(digest, graph); });
}

// So few rows are compared exactly.
TEST(GoldenGraph, BuildsOfFewRows) {
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric)
      expect_graph(name_of("graph.small", type, metric),
                   build_knn_graph(context(), make_rows(300, 19, 51, type), {.degree = 6, .metric = metric}));
  const Rows integers = make_integers(300, 32, 51);
  for (const std::size_t degree : {1, 10, 40})
    expect_graph(fmt::format("graph.small.degree_{}", degree),
                 build_knn_graph(context(), integers, {.degree = degree, .target_recall = 1}));
  expect_graph("graph.small.short_rows",
               build_knn_graph(context(), integers.view().slice(0, 5), {.degree = 9}));
}

// The way of many rows, with cells so small that few rows have many of them.
TEST(GoldenGraph, DescentOfEveryTypeAndMetric) {
  std::size_t number = 0;
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric) {
      if (!is_due(number++, 7)) continue;
      const Rows rows = make_rows(1200, 12, 52, type);
      expect_graph(name_of("graph.descent", type, metric),
                   graph::build(context(), rows, {.degree = 8, .metric = metric, .target_recall = 0.9},
                                support::small_partitions(8)));
    }
}

TEST(GoldenGraph, DescentOnEveryContext) {
  const Rows rows = make_rows(1500, 19, 53);
  const Rows integers = make_integers(1500, 19, 53);
  for (const Context& context : every_context())
    for (const std::size_t degree : {4, 20}) {
      if (!is_due(degree / 20, 2)) continue;
      expect_graph(fmt::format("graph.descent.degree_{}", degree),
                   graph::build(context, rows, {.degree = degree, .target_recall = 0.98},
                                support::small_partitions(degree)));
      expect_graph(fmt::format("graph.descent.integers.degree_{}", degree),
                   graph::build(context, integers, {.degree = degree, .target_recall = 0.9},
                                support::small_partitions(degree)));
    }
}

// More than exact search is used for.
TEST(GoldenGraph, ManyRows) {
  if (on_device()) return;  // the emulated one takes minutes
  expect("graph.large.neighbors", [](Digest& digest) {
    const KnnGraph graph =
        build_knn_graph(context(), make_rows(64'100, 6, 54), {.degree = 5, .target_recall = 0.8});
    EXPECT_EQ(graph.report.method, GraphMethod::nn_descent);
    add_graph(digest, graph);
  });
}

// The seven nearest neighbours, but for every third row, which lacks the first two.
Neighbors without_some_neighbors(RowsView rows, Metric metric) {
  const Neighbors nine = exact_knn_graph(context(), rows, 9, {.metric = metric});
  Neighbors most = {Matrix<Id>(rows.rows(), 7), Matrix<float>(rows.rows(), 7)};
  for (std::size_t row = 0; row < rows.rows(); ++row)
    for (std::size_t i = 0; i < 7; ++i) {
      const std::size_t from = row % 3 == 0 ? i + 2 : i;
      most.ids(row, i) = nine.ids(row, from);
      most.distances(row, i) = nine.distances(row, from);
    }
  return most;
}

TEST(GoldenGraph, Changes) {
  const TemporaryFolder folder;
  const Rows all = make_rows(1000, 19, 55);
  const RowsView rows = all.view();
  std::size_t number = 0;
  for (const Metric metric : every_metric) {
    if (!is_due(number++, 4)) continue;
    const std::string ending = std::string(name(metric));
    const KnnGraphOptions options = {.degree = 7, .metric = metric};
    const KnnGraph left = build_knn_graph(context(), rows.slice(0, 600), options);
    const KnnGraph right = build_knn_graph(context(), rows.slice(600, 400), options);
    const std::vector<Id> removed = support::every(600, 11);
    expect_graph("graph.merged." + ending, merge_knn_graphs(context(), rows, left, right));
    expect_graph("graph.added." + ending, add_to_knn_graph(context(), rows.slice(0, 700), left));
    expect_graph("graph.removed." + ending,
                 remove_from_knn_graph(context(), rows.slice(0, 600), left, removed));
    // The ways of many rows.
    const graph::Tuning by_partitions = support::by_partitions(7);
    const graph::Tuning by_comparing = support::by_comparing(7);
    expect_graph("graph.merged.by_cells." + ending,
                 graph::merge(context(), rows, left, right, {}, by_partitions));
    expect_graph("graph.added.by_cells." + ending,
                 graph::add(context(), rows, left, {}, by_partitions, support::small_partitions(7)));
    expect_graph("graph.added.by_meeting." + ending,
                 graph::add(context(), rows, left, {}, by_comparing, support::small_partitions(7)));
    expect_graph("graph.removed.by_cells." + ending,
                 graph::remove(context(), rows.slice(0, 600), left, removed, {}, by_partitions));
    for (const std::size_t sample : {0, 100})
      expect(fmt::format("measure_recall.{}.{}", ending, sample), [&](Digest& digest) {
        const Neighbors most = without_some_neighbors(rows.slice(0, 600), metric);
        add_recall(digest, measure_recall(context(), rows.slice(0, 600), most, metric,
                                          sample == 0 ? std::nullopt : std::optional<std::size_t>(sample)));
      });
    save(left, folder / "graph.nw", {{"rows", "made"}});
    expect_container("file.graph." + ending, folder / "graph.nw");
    expect_answer("graph.loaded." + ending, load_knn_graph(folder / "graph.nw").neighbors);
  }
}

}  // namespace
}  // namespace nearwise::golden
