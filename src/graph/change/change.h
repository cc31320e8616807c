// Merge, add and remove with explicit tuning. nearwise/graph/knn_graph.h has the contracts.
#pragma once

#include <cstddef>
#include <span>

#include "graph/build/builder.h"
#include "nearwise/graph/knn_graph.h"

namespace nearwise::graph {

// Rows start with neighbours, so that fewer partitions suffice. Lists have `degree` entries.
Tuning change_tuning(std::size_t degree, double recall);

KnnGraph merge(const Context& context, const RowsView& rows, const KnnGraph& left, const KnnGraph& right,
               const KnnGraphChangeOptions& options, const Tuning& tuning);
// Two consecutive sets of rows, each with its own neighbours.
struct Sides {
  std::size_t left_rows = 0;
  InitialNeighbors initial;  // in row numbers of the union
  bool is_exact = false;     // the lists of the larger set are exact
};
// The graph of the union. Checks the memory limit only.
KnnGraph merge_sides(const char* operation, const Context& context, const RowsView& rows, const Sides& sides,
                     const KnnGraphOptions& options, const Tuning& tuning);
// building: tuning for the graph of the new rows.
KnnGraph add(const Context& context, const RowsView& rows, const KnnGraph& graph,
             const KnnGraphChangeOptions& options, const Tuning& tuning, const Tuning& building);
KnnGraph remove(const Context& context, const RowsView& rows, const KnnGraph& graph,
                std::span<const Id> removed, const KnnGraphChangeOptions& options, const Tuning& tuning);

// Throws Error(invalid_argument) unless `graph` satisfies its contract, has rows.rows() rows, and the
// distances of 688 sampled rows (or all, if fewer) are those between `rows`. what: the graph's name in
// messages.
void check_graph(const char* operation, const char* what, const Context& context, const RowsView& rows,
                 const KnnGraph& graph);

}  // namespace nearwise::graph
