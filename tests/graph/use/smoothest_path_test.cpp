// The smoothest path is the first of all paths by widest step, number of steps and ids.
#include "nearwise/graph/smoothest_path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "oracle/graph_paths.h"
#include "support/error_of.h"
#include "support/knn_cases.h"
#include "support/random_graphs.h"

namespace nearwise {
namespace {

using support::error_of;
using support::graph_of;
using support::random_graph;

std::vector<std::size_t> rows_of(const std::optional<SmoothestPath>& path) {
  if (!path) return {};
  return {path->rows.begin(), path->rows.end()};
}

// The distances and their widest are those of the path's own steps.
void expect_true_distances(const oracle::Table& steps, Metric metric, const SmoothestPath& path) {
  ASSERT_EQ(path.distances.size() + 1, path.rows.size());
  ASSERT_EQ(path.widest.has_value(), path.rows.size() > 1);
  double widest = -oracle::no_step;
  for (std::size_t i = 0; i + 1 < path.rows.size(); ++i) {
    const double width = oracle::width_of(metric, path.distances[i]);
    EXPECT_EQ(width,
              steps[static_cast<std::size_t>(path.rows[i])][static_cast<std::size_t>(path.rows[i + 1])]);
    widest = std::max(widest, width);
  }
  if (!path.widest) return;
  EXPECT_EQ(oracle::width_of(metric, *path.widest), widest);
}

TEST(SmoothestPath, IsTheFirstOfAllPaths) {
  std::size_t missing = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Metric metric = support::every_metric[seed % support::every_metric.size()];
    const std::size_t islands = 1 + seed % 5 / 4;
    const KnnGraph graph = random_graph(metric, 2 + seed % 6, 1 + seed % 3, islands, seed);
    const oracle::Table steps = oracle::steps_of(graph);
    for (std::size_t from = 0; from < graph.rows(); ++from)
      for (std::size_t to = 0; to < graph.rows(); ++to) {
        const auto path = smoothest_path(graph, static_cast<Id>(from), static_cast<Id>(to));
        EXPECT_EQ(rows_of(path), oracle::EveryPath(steps, from, to).best())
            << "seed " << seed << " from " << from << " to " << to;
        if (path) expect_true_distances(steps, metric, *path);
        missing += path ? 0 : 1;
      }
  }
  EXPECT_GT(missing, 20U);  // the graphs have islands
}

TEST(SmoothestPath, IsAsNarrowAsFloydAndWarshallFind) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Metric metric = support::every_metric[seed % support::every_metric.size()];
    const KnnGraph graph = random_graph(metric, 30 + seed, 2, 1 + seed % 2, seed);
    const oracle::Table steps = oracle::steps_of(graph);
    const oracle::Table narrowest = oracle::narrowest_ways(steps);
    for (std::size_t to = 1; to < graph.rows(); ++to) {
      const auto path = smoothest_path(graph, 0, static_cast<Id>(to));
      ASSERT_EQ(path.has_value(), narrowest[0][to] != oracle::no_step) << "seed " << seed << " to " << to;
      if (!path) continue;
      expect_true_distances(steps, metric, *path);
      EXPECT_EQ(oracle::width_of(metric, *path->widest), narrowest[0][to]) << "seed " << seed << " to " << to;
    }
  }
}

TEST(SmoothestPath, TakesManySmallStepsRatherThanOneLarge) {
  const KnnGraph graph =
      graph_of(Metric::euclidean,
               {{{1, 1}, {3, 2.5F}}, {{2, 1}}, {{3, 1.5F}}, {}});  // the last row's edges lead in only
  const auto path = smoothest_path(graph, 3, 0);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->rows, (std::vector<Id>{3, 2, 1, 0}));
  EXPECT_EQ(path->distances, (std::vector<float>{1.5F, 1, 1}));
  EXPECT_EQ(path->widest, 1.5F);
}

TEST(SmoothestPath, OfARowToItselfHasNoSteps) {
  const KnnGraph graph = random_graph(Metric::cosine, 5, 2, 1, 3);
  const auto path = smoothest_path(graph, 2, 2);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->rows, std::vector<Id>{2});
  EXPECT_TRUE(path->distances.empty());
  EXPECT_FALSE(path->widest.has_value());
}

// Distances of very large rows are beyond float; the rows are still connected.
TEST(SmoothestPath, GoesOverInfiniteDistances) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto path = smoothest_path(graph_of(Metric::sqeuclidean, {{{1, infinity}}, {{2, 1}}, {}}), 2, 0);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->rows, (std::vector<Id>{2, 1, 0}));
  EXPECT_EQ(path->widest, infinity);
}

// In a graph that was not made by one metric: the shorter of the two counts.
TEST(SmoothestPath, TakesTheShorterOfTwoDirections) {
  const auto path = smoothest_path(graph_of(Metric::euclidean, {{{1, 5}}, {{0, 3}}}), 0, 1);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->distances, std::vector<float>{3});
}

TEST(SmoothestPath, RefusesRowsThatAreNotThere) {
  KnnGraph graph = random_graph(Metric::cosine, 5, 2, 1, 4);
  const auto expect_refused = [&](Id from, Id to, const std::string& words) {
    const Error error = error_of([&] { smoothest_path(graph, from, to); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  };
  expect_refused(5, 0, "start must be a row from 0 to 4, got 5");
  expect_refused(0, -1, "end must be a row from 0 to 4, got -1");
  graph.neighbors.ids(3, 1) = 5;
  expect_refused(0, 1, "neighbours from 0 to 4 expected, got 5 of row 3");
  graph.neighbors.ids(3, 1) = -2;
  expect_refused(0, 1, "got -2 of row 3");
  graph.neighbors.ids(3, 1) = no_id;
  graph.neighbors.distances(2, 0) = std::nanf("");
  expect_refused(0, 1, "got NaN of row 2");
  graph.neighbors.distances = Matrix<float>(5, 1);
  expect_refused(0, 1, "one shape expected, got [5, 2] and [5, 1]");
}

}  // namespace
}  // namespace nearwise
