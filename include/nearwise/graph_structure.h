// What a graph of nearest neighbours says of its rows: which hang together, which are nearly the same, and who are
// neighbours of each other. All of it follows from the graph alone, and is the same on every machine.
//
// All throw Error(invalid_argument) for neighbours that are no rows of the graph. Beside the graph and the result: 4 bytes
// for each row.
#pragma once

#include <cstddef>
#include <vector>

#include "nearwise/exact.h"
#include "nearwise/knn_graph.h"
#include "nearwise/types.h"

namespace nearwise {

// Groups are numbered in the order of their first rows.
struct RowGroups {
  std::vector<Id> labels;          // of every row; no_id: in no group
  std::vector<std::size_t> sizes;  // rows of every group
};

// Rows that a path of edges connects, whichever way they lead. Every row is in a group, perhaps alone.
RowGroups connected_components(const KnnGraph& graph);

// Rows that a chain of edges connects of which each is at most `distance` long (inner_product: at least), in the unit of
// the graph's metric. Rows without such an edge are in no group. Only pairs that the graph holds are looked at: more
// copies of a row than the graph's degree are found through those they share.
RowGroups near_duplicates(const KnnGraph& graph, float distance);

// Of every row's neighbours those that have it among theirs, best first.
RangeNeighbors mutual_neighbors(const KnnGraph& graph);

}  // namespace nearwise
