// Graphs that no rows have: any neighbours at distances of few different values, so that ties are everywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/distance.h"
#include "core/math/random.h"
#include "nearwise/graph/knn_graph.h"

namespace nearwise::support {

struct GraphEntry {
  Id id;
  float distance;
};

// Rows as given, each put in order; those that are shorter than the longest end in no neighbours.
inline KnnGraph graph_of(Metric metric, std::vector<std::vector<GraphEntry>> rows) {
  std::size_t degree = 1;
  for (const auto& row : rows) degree = std::max(degree, row.size());
  KnnGraph graph;
  graph.metric = metric;
  graph.neighbors = {Matrix<Id>(rows.size(), degree), Matrix<float>(rows.size(), degree)};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::sort(rows[row].begin(), rows[row].end(), [&](const GraphEntry& left, const GraphEntry& right) {
      return std::pair(sort_key(metric, left.distance), left.id) <
             std::pair(sort_key(metric, right.distance), right.id);
    });
    rows[row].resize(degree, {no_id, padding_distance(metric)});
    for (std::size_t i = 0; i < degree; ++i) {
      graph.neighbors.ids(row, i) = rows[row][i].id;
      graph.neighbors.distances(row, i) = rows[row][i].distance;
    }
  }
  return graph;
}

// `degree` other rows each, or all there are. Rows of different `islands` do not meet.
inline KnnGraph random_graph(Metric metric, std::size_t rows, std::size_t degree, std::size_t islands,
                             std::uint64_t seed) {
  std::vector<std::vector<GraphEntry>> lists(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const Random random(seed, row);
    std::vector<std::pair<std::uint64_t, std::size_t>> others;
    for (std::size_t other = row % islands; other < rows; other += islands)
      if (other != row) others.emplace_back(random.bits(other), other);
    std::sort(others.begin(), others.end());
    for (std::size_t i = 0; i < std::min(degree, others.size()); ++i) {
      const std::size_t other = others[i].second;
      // One value for both directions, as the distances of rows have.
      const Random pair(seed, rows + std::min(row, other));
      lists[row].push_back(
          {static_cast<Id>(other), static_cast<float>(pair.below(std::max(row, other), 7)) - 2});
    }
  }
  return graph_of(metric, std::move(lists));
}

}  // namespace nearwise::support
