// Components, near duplicates and mutual neighbours are those of the definitions.
#include "nearwise/graph/graph_structure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "oracle/graph_paths.h"
#include "support/error_of.h"
#include "support/knn_cases.h"
#include "support/random_graphs.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Kind;
using support::random_graph;
using support::Rows;

void expect_sizes_of_labels(const RowGroups& groups) {
  std::vector<std::size_t> sizes(groups.sizes.size());
  for (const Id label : groups.labels)
    if (label != no_id) ++sizes.at(static_cast<std::size_t>(label));
  EXPECT_EQ(groups.sizes, sizes);
}

TEST(ConnectedComponents, AreThoseOfTheDefinition) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const KnnGraph graph = random_graph(support::every_metric[seed % support::every_metric.size()], 1 + seed,
                                        1 + seed % 2, 1 + seed % 7, seed);
    const RowGroups found = connected_components(graph);
    EXPECT_EQ(found.labels, oracle::groups(oracle::steps_of(graph), oracle::no_step, 1)) << "seed " << seed;
    expect_sizes_of_labels(found);
    EXPECT_EQ(std::accumulate(found.sizes.begin(), found.sizes.end(), std::size_t{0}), graph.rows());
  }
}

TEST(NearDuplicates, AreThoseOfTheDefinition) {
  std::size_t grouped = 0;
  std::size_t alone = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Metric metric = support::every_metric[seed % support::every_metric.size()];
    const KnnGraph graph = random_graph(metric, 2 + seed, 2, 1, seed);
    for (const float distance : {-3.0F, -2.0F, 0.0F, 3.5F, 4.0F}) {
      const RowGroups found = near_duplicates(graph, distance);
      EXPECT_EQ(found.labels, oracle::groups(oracle::steps_of(graph), oracle::width_of(metric, distance), 2))
          << "seed " << seed << " distance " << distance;
      expect_sizes_of_labels(found);
      for (const Id label : found.labels) ++(label == no_id ? alone : grouped);
    }
  }
  EXPECT_GT(grouped, 100U);
  EXPECT_GT(alone, 100U);
}

// Many more copies of a row than the graph has neighbours: they are one group all the same.
TEST(NearDuplicates, HoldAllCopiesOfARow) {
  support::Values values = support::generate(Kind::normal, 300, 5, 1);
  for (std::size_t copy = 50; copy < 200; ++copy)
    for (std::size_t i = 0; i < 5; ++i) values(copy, i) = values(7, i);
  const Rows rows(values, ElementType::f32);
  const KnnGraph graph = build_knn_graph(Context::cpu({.threads = 1}), rows, {.degree = 4});
  const RowGroups found = near_duplicates(graph, 0);
  EXPECT_EQ(found.sizes, std::vector<std::size_t>{151});
  for (std::size_t row = 0; row < 300; ++row)
    EXPECT_EQ(found.labels[row], row == 7 || (row >= 50 && row < 200) ? 0 : no_id) << row;
}

TEST(MutualNeighbors, HaveEachOtherInTheirLists) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const KnnGraph graph = random_graph(support::every_metric[seed % support::every_metric.size()],
                                        1 + 2 * seed, 1 + seed % 6, 1 + seed % 3, seed);
    const Matrix<Id>& ids = graph.neighbors.ids;
    const RangeNeighbors found = mutual_neighbors(graph);
    ASSERT_EQ(found.offsets.size(), graph.rows() + 1);
    ASSERT_EQ(found.offsets.back(), found.ids.size());
    ASSERT_EQ(found.distances.size(), found.ids.size());
    std::size_t next = 0;
    for (std::size_t row = 0; row < graph.rows(); ++row) {
      EXPECT_EQ(found.offsets[row], next);
      for (std::size_t i = 0; i < graph.degree(); ++i) {
        if (ids(row, i) == no_id) continue;
        bool mutual = false;
        for (std::size_t j = 0; j < graph.degree(); ++j)
          mutual |= ids(static_cast<std::size_t>(ids(row, i)), j) == static_cast<Id>(row);
        if (!mutual) continue;
        ASSERT_LT(next, found.ids.size());
        EXPECT_EQ(found.ids[next], ids(row, i));
        EXPECT_EQ(found.distances[next], graph.neighbors.distances(row, i));
        ++next;
      }
    }
    EXPECT_EQ(next, found.ids.size());
  }
}

TEST(GraphStructure, OfNoRowsIsEmpty) {
  const KnnGraph none;
  EXPECT_TRUE(connected_components(none).labels.empty());
  EXPECT_TRUE(near_duplicates(none, 1).sizes.empty());
  EXPECT_EQ(mutual_neighbors(none).offsets, std::vector<std::size_t>{0});
}

TEST(GraphStructure, RefusesNeighboursThatAreNoRows) {
  KnnGraph graph = random_graph(Metric::euclidean, 6, 2, 1, 1);
  EXPECT_EQ(error_of([&] { near_duplicates(graph, std::nanf("")); }).code(), ErrorCode::invalid_argument);
  graph.neighbors.ids(4, 0) = 6;
  for (const Error& error :
       {error_of([&] { connected_components(graph); }), error_of([&] { near_duplicates(graph, 1); }),
        error_of([&] { mutual_neighbors(graph); })}) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("got 6 of row 4"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nearwise
