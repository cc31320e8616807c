// How rows without complete neighbour lists are updated: shared by merge, add and remove.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/build/builder.h"
#include "nearwise/graph/knn_graph.h"

namespace nearwise::graph {

enum class UpdateMethod : std::uint8_t {
  exact,       // searches all rows again
  compare,     // compares the affected rows with all rows
  partitions,  // compares within partitions, or as the change provides for many rows
};

// affected: rows without complete lists. is_exact: the lists of the others are exact.
UpdateMethod choose_update_method(std::size_t rows, std::size_t affected, bool is_exact,
                                  const KnnGraphOptions& options, const Tuning& tuning);

// Upper bound on the budget; exact search adapts to any limit.
std::uint64_t bytes_of(UpdateMethod method, const Context& context, const RowsView& rows,
                       const KnnGraphOptions& options, const Tuning& tuning);

struct Comparison {
  InitialNeighbors initial;
  std::span<const std::uint32_t> rows;  // compared with all rows
  bool is_exact = false;                // the lists of the other rows are exact
};
// The updated graph: exact if comparison.is_exact, else with a measured recall.
KnnGraph compare_with_all(const char* operation, const Context& context, const RowsView& rows,
                          const Comparison& comparison, const KnnGraphOptions& options, const Tuning& tuning);

inline KnnGraphOptions options_of(const KnnGraph& graph, const KnnGraphChangeOptions& options) {
  return {.degree = graph.degree(),
          .metric = graph.metric,
          .target_recall = options.target_recall,
          .on_round = options.on_round};
}

}  // namespace nearwise::graph
