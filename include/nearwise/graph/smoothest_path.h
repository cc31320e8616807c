// The minimax path between two rows of a neighbour graph: the path whose longest edge is shortest. Edges
// count in both directions; of several such paths, one with the fewest edges is returned.
#pragma once

#include <optional>
#include <vector>

#include "nearwise/export.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct SmoothestPath {
  std::vector<Id> rows;          // from start to end, inclusive
  std::vector<float> distances;  // of each edge
  // The largest distance (inner_product: the smallest product); nullopt for a path without edges.
  std::optional<float> widest;
};

// nullopt if the graph does not connect the two. Throws Error(invalid_argument) for ids that are not rows of
// the graph.
std::optional<SmoothestPath> smoothest_path(const KnnGraph& graph, Id start, Id end);

}  // namespace nearwise
