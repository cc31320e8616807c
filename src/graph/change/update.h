// How rows that are new to a graph, or have lost neighbours, get to know the others: what all changes share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/build/builder.h"
#include "nearwise/knn_graph.h"

namespace nearwise::graph {

enum class UpdateMethod : std::uint8_t {
  exact,       // all rows are searched again
  compare,     // those that are concerned meet all rows
  partitions,  // or what the change has for many rows
};

// concerned: rows that do not know their neighbours.
UpdateMethod choose_update_method(std::size_t rows, std::size_t concerned, bool known_exactly,
                                  const KnnGraphOptions& options, const Tuning& tuning);

// Bytes on the budget that it takes, at the most; exact search makes do with what there is.
std::uint64_t bytes_of(UpdateMethod method, const Context& context, const RowsView& rows,
                       const KnnGraphOptions& options, const Tuning& tuning);

struct Comparison {
  InitialNeighbors initial;
  std::span<const std::uint32_t> rows;  // that meet all others
  bool exact = false;                   // the others know each other exactly
};
// The graph in which they have met; it is exact where the others' was, and measured where not.
KnnGraph compare_with_all(const char* operation, const Context& context, const RowsView& rows,
                          const Comparison& comparison, const KnnGraphOptions& options, const Tuning& tuning);

inline KnnGraphOptions options_of(const KnnGraph& graph, const KnnGraphChangeOptions& options) {
  return {.degree = graph.degree(),
          .metric = graph.metric,
          .recall = options.recall,
          .on_round = options.on_round};
}

}  // namespace nearwise::graph
