// The smoothest way through a graph of nearest neighbours: of all paths between two rows the one whose widest step is
// the least wide (Johnson, Douze and Jegou, "Billion-scale similarity search with GPUs", section 6.6, equation 19).
//
// Exact on the graph, whose edges lead both ways. Of several such paths it is one with the fewest steps, and of those the
// one with the lowest ids, compared from its start. Beside the graph it takes 8 bytes for each of its entries, and
// some 30 for each row.
#pragma once

#include <optional>
#include <vector>

#include "nearwise/knn_graph.h"
#include "nearwise/types.h"

namespace nearwise {

struct SmoothestPath {
  std::vector<Id> rows;          // from start to end, both included
  std::vector<float> distances;  // of every step, one fewer than rows
  // The largest of the distances (inner_product: the smallest of the products); none where there is no step.
  std::optional<float> widest;
};

// None where the graph does not connect the two. Throws Error(invalid_argument) for a row that is not there, and for
// neighbours that are no rows of the graph.
std::optional<SmoothestPath> smoothest_path(const KnnGraph& graph, Id start, Id end);

}  // namespace nearwise
