// Graphs that are built keep their contract, and the recall that they report is the oracle's.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "core/math/proportion_interval.h"
#include "nearwise/exact.h"
#include "support/graph_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::same_bytes;

const Context& two_threads() {
  static const Context context = Context::cpu({.threads = 2});
  return context;
}

class BuildGraph : public ::testing::TestWithParam<Metric> {};

// Partitions and descent, for every element type.
TEST_P(BuildGraph, KeepsItsContractAndTheRecallThatWasAskedFor) {
  for (const ElementType type : support::every_type) {
    SCOPED_TRACE(name(type));
    const Rows rows(support::generate(Kind::normal, 1500, 9, 1), type);
    const KnnGraph graph =
        graph::build(two_threads(), rows, {.degree = 10, .metric = GetParam(), .target_recall = 0.95},
                     support::small_partitions(10));
    EXPECT_NO_THROW(graph.validate());
    EXPECT_EQ(graph.rows(), 1500U);
    EXPECT_EQ(graph.degree(), 10U);
    EXPECT_EQ(graph.metric, GetParam());
    const double recall = support::oracle_recall(rows, graph);
    // All rows are in the sample: the report is the truth.
    EXPECT_DOUBLE_EQ(graph.report.recall.value, recall);
    EXPECT_EQ(graph.report.method, GraphMethod::nn_descent);
    EXPECT_EQ(graph.report.reached, recall >= 0.95);
    EXPECT_GE(recall, 0.95);
  }
}

INSTANTIATE_TEST_SUITE_P(Metrics, BuildGraph, ::testing::ValuesIn(support::every_metric),
                         support::metric_name);

// Rounds go on as long as they must, and what each brought is told.
TEST(BuildGraphRounds, RecallRisesFromRoundToRound) {
  const Rows rows(support::generate(Kind::normal, 2000, 8, 2), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(10);
  tuning.overlap = 1;
  std::vector<double> seen;
  const KnnGraph graph = graph::build(two_threads(), rows,
                                      {.degree = 10,
                                       .target_recall = 0.98,
                                       .on_round =
                                           [&](const GraphRound& round) {
                                             EXPECT_EQ(round.round, seen.size());
                                             seen.push_back(round.recall.value);
                                           }},
                                      tuning);
  ASSERT_GE(seen.size(), 2U);
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i], seen[i - 1]);
  EXPECT_EQ(seen.size(), graph.report.rounds.size());
  EXPECT_EQ(seen.back(), graph.report.recall.value);
  EXPECT_TRUE(graph.report.reached);
}

// Awkward numbers of rows, and more neighbours never found worse.
TEST(BuildGraphShapes, RecallDoesNotFallWithTheDegreeNorAtAwkwardNumbersOfRows) {
  for (const std::size_t degree : {5UL, 16UL, 33UL, 64UL, 128UL}) {
    const Rows rows(support::generate(Kind::normal, 1024, 8, 3), ElementType::f32);
    const KnnGraph graph = graph::build(two_threads(), rows, {.degree = degree, .target_recall = 0.9},
                                        support::small_partitions(degree));
    graph.validate();
    EXPECT_TRUE(graph.report.reached) << "degree " << degree << ": " << graph.report.recall.value;
  }
  for (const std::size_t count : {12UL, 13UL, 17UL, 31UL, 32UL, 33UL, 255UL, 257UL, 640UL, 1000UL, 1023UL}) {
    const Rows rows(support::generate(Kind::normal, count, 8, 4), ElementType::f32);
    const KnnGraph graph = graph::build(two_threads(), rows, {.degree = 10, .target_recall = 0.9},
                                        support::small_partitions(10));
    graph.validate();
    EXPECT_TRUE(graph.report.reached) << count << " rows: " << graph.report.recall.value;
  }
}

// Duplicates fill each other's lists and know nobody else. Would catch: a descent that they trap.
TEST(BuildGraphDuplicates, AFifthOfTheRowsTwiceOrAThirdOfThemEqualTrapNobody) {
  for (const Kind kind : {Kind::exact_duplicates, Kind::zero_rows, Kind::near_duplicates, Kind::identical}) {
    SCOPED_TRACE(name(kind));
    const Rows rows(support::generate(kind, 1500, 9, 5), ElementType::f32);
    const KnnGraph graph = graph::build(two_threads(), rows, {.degree = 10, .target_recall = 0.95},
                                        support::small_partitions(10));
    graph.validate();
    EXPECT_GE(support::oracle_recall(rows, graph), 0.95);
  }
}

TEST(BuildGraphExact, FewRowsAndAFullRecallAreSearchedExactly) {
  const Rows rows(support::generate(Kind::exact_duplicates, 300, 7, 6), ElementType::f32);
  for (const double recall : {0.5, 1.0}) {
    const KnnGraph graph = build_knn_graph(two_threads(), rows, {.degree = 9, .target_recall = recall});
    graph.validate();
    EXPECT_EQ(graph.report.method, GraphMethod::exact);
    EXPECT_TRUE(graph.report.reached);
    EXPECT_EQ(graph.report.recall.low, 1);
    EXPECT_TRUE(same_bytes(graph.neighbors, exact_knn_graph(two_threads(), rows, 9)));
  }
}

// Rows that are alone in their partitions. Would catch: lists with holes.
TEST(BuildGraphEdges, RowsThatMetFewOthersHaveFullListsToo) {
  const Rows rows(support::generate(Kind::normal, 400, 60, 9), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(20);
  tuning.overlap = 1;
  tuning.partition_rows = 4;
  tuning.attempts = 1;
  tuning.rounds = 0;
  const KnnGraph graph = graph::build(two_threads(), rows, {.degree = 20, .target_recall = 0.99}, tuning);
  EXPECT_NO_THROW(graph.validate());
}

// Where no two rows are near each other nothing finds neighbours but a look at all pairs.
TEST(BuildGraphExact, IsTheLastResortAndSaysSo) {
  const Rows rows(support::generate(Kind::normal, 1200, 200, 7), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(10);
  tuning.overlap = 1;
  tuning.attempts = 1;
  tuning.rounds = 1;
  const KnnGraphOptions options = {.degree = 10, .target_recall = 0.99};
  const KnnGraph given_up = graph::build(two_threads(), rows, options, tuning);
  given_up.validate();
  EXPECT_FALSE(given_up.report.reached);
  EXPECT_LT(given_up.report.recall.value, 0.99);
  tuning.last_resort_rows = 2000;
  const KnnGraph exact = graph::build(two_threads(), rows, options, tuning);
  EXPECT_TRUE(exact.report.reached);
  EXPECT_EQ(exact.report.method, GraphMethod::exact);
  EXPECT_EQ(exact.report.rounds.size(), given_up.report.rounds.size());
  EXPECT_TRUE(same_bytes(exact.neighbors, exact_knn_graph(two_threads(), rows, 10)));
}

// Few rows without company among many that have it. Would catch: everybody searched exactly for their sake,
// or nobody.
TEST(BuildGraphExact, IsForTheRowsAloneThatStillChange) {
  constexpr std::size_t count = 3000, dim = 60;
  support::Values values = support::generate(Kind::normal, count, dim, 10);
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t i = 3; row % 60 != 0 && i < dim; ++i) values(row, i) = 0;
  const Rows rows(values, ElementType::f32);
  graph::Tuning tuning = support::small_partitions(10);
  tuning.measured = count;
  tuning.attempts = 1;
  tuning.rounds = 1;
  tuning.max_compared_rows = 0;
  const KnnGraphOptions options = {.degree = 10, .target_recall = 0.9999};
  const KnnGraph without = graph::build(two_threads(), rows, options, tuning);
  EXPECT_FALSE(without.report.reached);
  tuning.max_compared_rows = 180;
  const KnnGraph with = graph::build(two_threads(), rows, options, tuning);
  with.validate();
  EXPECT_TRUE(with.report.reached) << with.report.recall.value;
  EXPECT_EQ(with.report.method, GraphMethod::nn_descent);
  EXPECT_DOUBLE_EQ(with.report.recall.value, support::oracle_recall(rows, with));
  EXPECT_EQ(with.report.rounds.size(), without.report.rounds.size() + 1);
}

TEST(BuildGraphEdges, RowsEndWhereThereAreNoOthers) {
  for (const std::size_t count : {0UL, 1UL, 2UL, 5UL}) {
    const Rows rows(support::generate(Kind::normal, count, 3, 8), ElementType::f32);
    const KnnGraph graph = build_knn_graph(two_threads(), rows, {.degree = 5});
    EXPECT_EQ(graph.rows(), count);
    EXPECT_NO_THROW(graph.validate());
  }
}

TEST(RecallInterval, IsWilsonsAndHoldsTheTruthAsOftenAsItSays) {
  // 95 of 100: 0.8882 to 0.9785 by the formula of the textbook.
  const ProportionInterval known = proportion_interval(0.95, 0.95 * 0.05, 100);
  EXPECT_NEAR(known.low, 0.8882, 1e-4);
  EXPECT_NEAR(known.high, 0.9785, 1e-4);
  EXPECT_LT(proportion_interval(1, 0, 2000).low, 1);
  for (const std::size_t count : {1UL, 7UL, 2000UL}) {
    EXPECT_EQ(proportion_interval(1, 0, count).high, 1);
    EXPECT_EQ(proportion_interval(0, 0, count).low, 0);
  }
  EXPECT_GT(proportion_interval(1, 0, 2000).low, 0.998);
  std::size_t held = 0;
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const Random random(trial, 1);
    double sum = 0;
    double squares = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
      double found = 0;  // of ten neighbours, each with a chance of 0.9
      for (std::uint64_t j = 0; j < 10; ++j) found += random.uniform(i * 10 + j) < 0.9 ? 0.1 : 0;
      sum += found;
      squares += found * found;
    }
    const ProportionInterval estimate =
        proportion_interval(sum / 200, squares / 200 - sum / 200 * (sum / 200), 200);
    held += estimate.low <= 0.9 && 0.9 <= estimate.high ? 1 : 0;
  }
  EXPECT_GE(held, 930U);
  EXPECT_LE(held, 970U);
}

}  // namespace
}  // namespace nearwise
