// Graphs that were merged, added to and removed from keep their contract and the target recall,
// and exact ones stay exact.
#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "nearwise/exact.h"
#include "support/change_cases.h"

namespace nearwise {
namespace {

using support::by_comparing;
using support::by_partitions;
using support::Kind;
using support::Rows;
using support::same_bytes;

const Context& two_threads() {
  static const Context context = Context::cpu({.threads = 2});
  return context;
}

// Both are small enough for all rows to be in the sample: the report is the truth.
void expect_good(RowsView rows, const KnnGraph& graph, double wanted) {
  EXPECT_NO_THROW(graph.validate());
  ASSERT_EQ(graph.rows(), rows.rows());
  const double recall = support::oracle_recall(rows, graph);
  EXPECT_DOUBLE_EQ(graph.report.recall.value, recall);
  EXPECT_EQ(graph.report.reached, recall >= wanted);
  EXPECT_GE(recall, wanted);
}

KnnGraph build(RowsView rows, std::size_t degree, Metric metric = Metric::sqeuclidean) {
  return graph::build(two_threads(), rows, {.degree = degree, .metric = metric, .target_recall = 0.95},
                      support::small_partitions(degree));
}

class ChangeGraph : public ::testing::TestWithParam<Metric> {};

// Would catch: ids of the right side that are not moved, lists that forget what was known.
TEST_P(ChangeGraph, TwoSidesBecomeOneGraphOfTheRecallThatWasAskedFor) {
  // All types with one metric, one type with the others: to save time.
  const std::span<const ElementType> every = support::every_type;
  const auto types = GetParam() == Metric::sqeuclidean ? every : every.first(1);
  for (const ElementType type : types) {
    SCOPED_TRACE(name(type));
    const Rows rows(support::generate(Kind::exact_duplicates, 900, 9, 1), type);
    const KnnGraph left = build(rows.view().slice(0, 400), 10, GetParam());
    const KnnGraph right = build(rows.view().slice(400, 500), 10, GetParam());
    const KnnGraph merged =
        graph::merge(two_threads(), rows, left, right, {.target_recall = 0.95}, by_partitions(10));
    expect_good(rows, merged, 0.95);
    EXPECT_EQ(merged.metric, GetParam());
    EXPECT_EQ(merged.degree(), 10U);
    EXPECT_EQ(merged.report.method, GraphMethod::nn_descent);
    // Nobody is farther from a neighbour than before.
    for (std::size_t row = 0; row < 900; ++row)
      for (std::size_t i = 0; i < 10; ++i) {
        const float before =
            row < 400 ? left.neighbors.distances(row, i) : right.neighbors.distances(row - 400, i);
        const float after = merged.neighbors.distances(row, i);
        ASSERT_TRUE(GetParam() == Metric::inner_product ? after >= before : after <= before)
            << row << " " << i;
      }
  }
}

TEST_P(ChangeGraph, FewRowsThatMeetAllOthersLeaveAnExactGraphExact) {
  for (const ElementType type : {ElementType::f32, ElementType::u8}) {
    const Rows rows(support::generate(Kind::exact_duplicates, 400, 9, 2), type);
    const Neighbors expected = exact_knn_graph(two_threads(), rows, 7, {.metric = GetParam()});
    const auto exact = [&](std::size_t first, std::size_t count) {
      return build_knn_graph(two_threads(), rows.view().slice(first, count),
                             {.degree = 7, .metric = GetParam()});
    };
    for (const double recall : {0.5, 1.0}) {
      const KnnGraph added = graph::add(two_threads(), rows, exact(0, 350), {.target_recall = recall},
                                        by_comparing(7), support::small_partitions(7));
      EXPECT_TRUE(same_bytes(added.neighbors, expected)) << name(type);
      EXPECT_EQ(added.report.method, GraphMethod::exact);
      EXPECT_EQ(added.report.recall.low, 1);
      EXPECT_EQ(added.report.rounds.size(), 1U);
      for (const std::size_t left : {30UL, 380UL})
        EXPECT_TRUE(same_bytes(graph::merge(two_threads(), rows, exact(0, left), exact(left, 400 - left),
                                            {.target_recall = recall}, by_comparing(7))
                                   .neighbors,
                               expected))
            << name(type) << " left " << left;
    }
    // One that is not exact is measured.
    KnnGraph other = exact(0, 350);
    other.report.method = GraphMethod::nn_descent;
    EXPECT_EQ(graph::add(two_threads(), rows, other, {.target_recall = 0.9}, by_comparing(7),
                         support::small_partitions(7))
                  .report.method,
              GraphMethod::nn_descent);
  }
}

INSTANTIATE_TEST_SUITE_P(Metrics, ChangeGraph, ::testing::ValuesIn(support::every_metric),
                         support::metric_name);

// One side with no rows, one, fewer than the degree; every way.
TEST(MergeGraphsEdges, SidesOfAnySizeMerge) {
  const Rows rows(support::generate(Kind::normal, 600, 6, 3), ElementType::f32);
  for (const std::size_t left : {0UL, 1UL, 2UL, 9UL, 10UL, 11UL, 12UL, 589UL, 598UL, 599UL, 600UL})
    for (const graph::Tuning& tuning : {by_partitions(10), by_comparing(10)}) {
      SCOPED_TRACE(left);
      const auto half = [&](std::size_t first, std::size_t count) {
        return build_knn_graph(two_threads(), rows.view().slice(first, count), {.degree = 10});
      };
      const KnnGraph merged = graph::merge(two_threads(), rows, half(0, left), half(left, 600 - left),
                                           {.target_recall = 0.95}, tuning);
      expect_good(rows, merged, 0.95);
      if (HasFatalFailure()) return;
    }
  // Altogether no more than a row can hold.
  for (const std::size_t count : {0UL, 1UL, 2UL, 5UL, 11UL, 12UL})
    for (std::size_t left = 0; left <= count; ++left) {
      const RowsView few = rows.view().slice(0, count);
      const KnnGraph merged = merge_knn_graphs(
          two_threads(), few, build_knn_graph(two_threads(), few.slice(0, left), {.degree = 10}),
          build_knn_graph(two_threads(), few.slice(left, count - left), {.degree = 10}));
      EXPECT_NO_THROW(merged.validate());
      EXPECT_EQ(merged.rows(), count);
      EXPECT_EQ(merged.degree(), 10U);
      EXPECT_TRUE(merged.report.reached);
    }
}

// Duplicates on both sides fill each other's lists. Would catch: a merge that they trap.
TEST(MergeGraphsDuplicates, TrapNobody) {
  for (const Kind kind : {Kind::zero_rows, Kind::near_duplicates, Kind::identical}) {
    SCOPED_TRACE(name(kind));
    const Rows rows(support::generate(kind, 1200, 9, 4), ElementType::f32);
    const KnnGraph merged =
        graph::merge(two_threads(), rows, build(rows.view().slice(0, 600), 10),
                     build(rows.view().slice(600, 600), 10), {.target_recall = 0.95}, by_partitions(10));
    expect_good(rows, merged, 0.95);
  }
}

// Sides that lie apart from each other: there is nothing to find, and nothing is lost.
TEST(MergeGraphsApart, SidesThatHaveNothingInCommonKeepTheirLists) {
  support::Values values = support::generate(Kind::normal, 800, 5, 5);
  for (std::size_t row = 400; row < 800; ++row) values(row, 0) += 1000;
  const Rows rows(values, ElementType::f32);
  const KnnGraph merged = graph::merge(
      two_threads(), rows, build_knn_graph(two_threads(), rows.view().slice(0, 400), {.degree = 8}),
      build_knn_graph(two_threads(), rows.view().slice(400, 400), {.degree = 8}), {.target_recall = 0.95},
      by_partitions(8));
  EXPECT_TRUE(same_bytes(merged.neighbors, exact_knn_graph(two_threads(), rows, 8)));
}

// Graphs that are bad to begin with are improved until they are good.
TEST(MergeGraphsRounds, GoOnUntilTheRecallIsThere) {
  const Rows rows(support::generate(Kind::normal, 1600, 8, 6), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(10);
  tuning.overlap = 1;
  tuning.attempts = 1;
  tuning.rounds = 0;
  const auto bad = [&](std::size_t first) {
    KnnGraph graph = graph::build(two_threads(), rows.view().slice(first, 800),
                                  {.degree = 10, .target_recall = 0.99}, tuning);
    EXPECT_FALSE(graph.report.reached);
    return graph;
  };
  std::vector<double> seen;
  const KnnGraph merged =
      graph::merge(two_threads(), rows, bad(0), bad(800),
                   {.target_recall = 0.97,
                    .on_round = [&](const GraphRound& round) { seen.push_back(round.recall.value); }},
                   by_partitions(10));
  expect_good(rows, merged, 0.97);
  ASSERT_GE(seen.size(), 2U);
  EXPECT_EQ(seen.size(), merged.report.rounds.size());
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i], seen[i - 1]);
}

TEST(AddToGraph, NewcomersAreFoundAndFind) {
  const Rows rows(support::generate(Kind::exact_duplicates, 1400, 8, 7), ElementType::f32);
  for (const std::size_t before : {0UL, 1UL, 5UL, 300UL, 1300UL, 1399UL, 1400UL})
    for (const graph::Tuning& tuning : {by_partitions(10), by_comparing(10)}) {
      SCOPED_TRACE(before);
      const KnnGraph old = before <= 11 ? build_knn_graph(two_threads(), rows.view().slice(0, before))
                                        : build(rows.view().slice(0, before), 10);
      expect_good(rows,
                  graph::add(two_threads(), rows, old, {.target_recall = 0.95}, tuning,
                             support::small_partitions(10)),
                  0.95);
      if (HasFatalFailure()) return;
    }
}

class RemoveFromGraph : public ::testing::TestWithParam<Metric> {};

// Would catch: a number that was not changed, a list that keeps what is gone or stays short.
TEST_P(RemoveFromGraph, RowsThatLostNeighboursGetOthers) {
  const Rows rows(support::generate(Kind::exact_duplicates, 900, 9, 8), ElementType::f32);
  const KnnGraph graph = build(rows, 10, GetParam());
  for (const std::size_t step : {2UL, 20UL, 300UL})
    for (const graph::Tuning& tuning : {by_partitions(10), by_comparing(10)}) {
      SCOPED_TRACE(step);
      const std::vector<Id> removed = support::every(900, step);
      const support::Kept kept(rows, removed);
      const KnnGraph given =
          graph::remove(two_threads(), rows, graph, removed, {.target_recall = 0.95}, tuning);
      expect_good(kept.rows(), given, 0.95);
      if (HasFatalFailure()) return;
    }
}

TEST_P(RemoveFromGraph, AnExactGraphStaysExactWhereFewRowsAreConcerned) {
  const Rows rows(support::generate(Kind::exact_duplicates, 500, 6, 9), ElementType::u8);
  const KnnGraph graph = build_knn_graph(two_threads(), rows, {.degree = 6, .metric = GetParam()});
  for (const std::size_t step : {3UL, 60UL, 500UL}) {
    const std::vector<Id> removed = support::every(500, step);
    const support::Kept kept(rows, removed);
    const KnnGraph given =
        graph::remove(two_threads(), rows, graph, removed, {.target_recall = 1}, by_comparing(6));
    EXPECT_EQ(given.report.method, GraphMethod::exact);
    EXPECT_TRUE(
        same_bytes(given.neighbors, exact_knn_graph(two_threads(), kept.rows(), 6, {.metric = GetParam()})))
        << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Metrics, RemoveFromGraph, ::testing::ValuesIn(support::every_metric),
                         support::metric_name);

// All that are near each other but one: it has nobody left whose neighbours it could ask.
TEST(RemoveFromGraphEdges, RowsThatLostAllTheirNeighboursGetOthers) {
  support::Values values = support::generate(Kind::normal, 900, 5, 10);
  std::vector<Id> removed;
  for (std::size_t row = 0; row < 40; ++row) {
    values(row, 0) += 500;
    if (row != 17) removed.push_back(static_cast<Id>(row));
  }
  const Rows rows(values, ElementType::f32);
  const KnnGraph graph = build(rows, 8);
  const support::Kept kept(rows, removed);
  for (const graph::Tuning& tuning : {by_partitions(8), by_comparing(8)})
    expect_good(kept.rows(),
                graph::remove(two_threads(), rows, graph, removed, {.target_recall = 0.9}, tuning), 0.9);
}

TEST(RemoveFromGraphEdges, AllRowsNoneAndAllButAFewAreRemoved) {
  const Rows rows(support::generate(Kind::normal, 60, 5, 11), ElementType::f32);
  const KnnGraph graph = build_knn_graph(two_threads(), rows, {.degree = 8});
  std::vector<Id> removed(60);
  std::iota(removed.rbegin(), removed.rend(), 0);
  for (const std::size_t count : {0UL, 40UL, 50UL, 51UL, 58UL, 59UL, 60UL}) {
    const std::span<const Id> some(removed.data(), count);
    const KnnGraph given = remove_from_knn_graph(two_threads(), rows, graph, some);
    const support::Kept kept(rows, some);
    EXPECT_NO_THROW(given.validate());
    EXPECT_TRUE(same_bytes(given.neighbors,
                           exact_knn_graph(two_threads(), kept.rows(), 8, {.short_rows = ShortRows::pad})))
        << count;
  }
}

}  // namespace
}  // namespace nearwise
