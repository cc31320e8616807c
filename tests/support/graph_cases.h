// What tests of graphs share: small builds that go the long way, and the recall by the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "graph/build/builder.h"
#include "oracle/graph.h"
#include "support/knn_cases.h"

namespace nearwise::support {

// Partitions so small that a few thousand rows have many of them, and no exact search.
inline graph::Tuning small_partitions(std::size_t degree) {
  graph::Tuning tuning = graph::default_tuning(degree, 0.95);
  tuning.overlap = 3;
  tuning.partition_rows = 100;
  tuning.exact_rows = 0;
  tuning.last_resort_rows = 0;
  return tuning;
}

inline bool same_bytes(const Neighbors& left, const Neighbors& right) {
  const std::size_t size = left.ids.rows() * left.ids.cols();
  return left.ids.rows() == right.ids.rows() && left.ids.cols() == right.ids.cols() &&
         std::memcmp(left.ids.data(), right.ids.data(), size * sizeof(Id)) == 0 &&
         std::memcmp(left.distances.data(), right.distances.data(), size * sizeof(float)) == 0;
}

// Of all true neighbours, the share that is no nearer than what the graph has. Fails on a distance that is
// not the reported one of its pair.
inline double oracle_recall(RowsView rows, const KnnGraph& graph) {
  const std::vector<double> values = oracle::to_doubles(rows);
  const auto at = [&](std::size_t row) {
    return std::span<const double>(values.data() + row * rows.dim(), rows.dim());
  };
  const oracle::Answer exact = oracle::knn_graph(rows, graph.degree(), graph.metric);
  std::size_t found = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row)
    for (std::size_t i = 0; i < graph.degree(); ++i) {
      const Id id = graph.neighbors.ids(row, i);
      const float distance = graph.neighbors.distances(row, i);
      if (id == no_id) continue;
      const float expected = oracle::reported(graph.metric, at(row), at(static_cast<std::size_t>(id)));
      if (distance != expected) {
        ADD_FAILURE() << "row " << row << " place " << i << ": " << distance << " instead of " << expected;
        return 0;
      }
      const oracle::Candidate last = {exact.distances[(row + 1) * graph.degree() - 1],
                                      static_cast<Id>(rows.rows())};
      found += oracle::better(graph.metric, {distance, 0}, last) ? 1 : 0;
    }
  return static_cast<double>(found) / static_cast<double>(rows.rows() * graph.degree());
}

}  // namespace nearwise::support
