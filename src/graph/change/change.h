// Graphs that merge, grow and shrink, with numbers other than the usual ones. nearwise/knn_graph.h has the contracts.
#pragma once

#include <cstddef>
#include <span>

#include "graph/build/builder.h"
#include "nearwise/knn_graph.h"

namespace nearwise::graph {

// Of changes: rows come with neighbours, so that fewer partitions do. Lists have as many entries as rows have neighbours.
Tuning change_tuning(std::size_t degree, double recall);

KnnGraph merge(const Context& context, const RowsView& rows, const KnnGraph& left, const KnnGraph& right,
               const KnnGraphChangeOptions& options, const Tuning& tuning);
// Two sets of rows, one behind the other, each of which knows its own neighbours.
struct Sides {
  std::size_t left_rows = 0;
  InitialNeighbors initial;  // row numbers are those of both sets together
  bool exact = false;        // what the larger set knows
};
// The graph of both; nothing is checked but the memory.
KnnGraph merge_sides(const char* operation, const Context& context, const RowsView& rows, const Sides& sides,
                     const KnnGraphOptions& options, const Tuning& tuning);
// building: of the graph of the rows that are new.
KnnGraph add(const Context& context, const RowsView& rows, const KnnGraph& graph,
             const KnnGraphChangeOptions& options, const Tuning& tuning, const Tuning& building);
KnnGraph remove(const Context& context, const RowsView& rows, const KnnGraph& graph,
                std::span<const Id> removed, const KnnGraphChangeOptions& options, const Tuning& tuning);

// Throws Error(invalid_argument) unless `graph` keeps its contract and has `rows` rows, and distances of a sample of them
// are those between `rows`. what: the word for it, for the message.
void check_graph(const char* operation, const char* what, const Context& context, const RowsView& rows,
                 const KnnGraph& graph);

}  // namespace nearwise::graph
