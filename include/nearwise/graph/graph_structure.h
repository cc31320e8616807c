// Structure of a neighbour graph: connected components, near-duplicates, mutual neighbours. Results depend on
// the graph alone and are the same on every machine.
//
// All functions throw Error(invalid_argument) for ids that are not rows of the graph, and need 4 bytes per
// row in addition to the graph and the result.
#pragma once

#include <cstddef>
#include <vector>

#include "nearwise/exact.h"
#include "nearwise/export.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// Groups are numbered in the order of their first rows.
struct RowGroups {
  std::vector<Id> labels;          // group of each row; no_id: in no group
  std::vector<std::size_t> sizes;  // rows of each group
};

// Components of the undirected graph. Every row is in a group, possibly alone.
RowGroups connected_components(const KnnGraph& graph);

// Groups of rows connected by edges of at most `distance` (inner_product: at least). Rows without such an
// edge are in no group. Only edges of the graph count; duplicates of a row beyond its degree are found
// through shared neighbours.
RowGroups near_duplicates(const KnnGraph& graph, float distance);

// Each row's neighbours that have it among their own, best first.
RangeNeighbors mutual_neighbors(const KnnGraph& graph);

}  // namespace nearwise
