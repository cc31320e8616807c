// How rows that are new to a graph, or have lost neighbours, get to know the others: what all changes share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/build/builder.h"
#include "nearwise/knn_graph.h"

namespace nearwise::graph {

enum class Way : std::uint8_t {
  exact,  // all rows are searched again
  meet,   // those that are concerned meet all rows
  cells,  // or what the change has for many rows
};

// concerned: rows that do not know their neighbours.
Way choose_way(std::size_t rows, std::size_t concerned, bool known_exactly, const KnnGraphOptions& options,
               const Tuning& tuning);

// Bytes on the budget that it takes, at the most; exact search makes do with what there is.
std::uint64_t bytes_of(Way way, const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                       const Tuning& tuning);

struct Meeting {
  KnownNeighbors known;
  std::span<const std::uint32_t> rows;  // that meet all others
  bool exact = false;                   // the others know each other exactly
};
// The graph in which they have met; it is exact where the others' was, and measured where not.
KnnGraph meet_all(const char* operation, const Context& context, const RowsView& rows, const Meeting& meeting,
                  const KnnGraphOptions& options, const Tuning& tuning);

inline KnnGraphOptions options_of(const KnnGraph& graph, const KnnGraphChangeOptions& options) {
  return {.degree = graph.degree(),
          .metric = graph.metric,
          .recall = options.recall,
          .on_round = options.on_round};
}

}  // namespace nearwise::graph
