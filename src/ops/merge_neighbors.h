// Merges the answers of disjoint parts of a base.
#pragma once

#include <span>

#include "core/parallel.h"
#include "nearwise/matrix.h"
#include "nearwise/merge_neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// Parts [queries, k'] are sorted and padded with no_id. Output [queries, k]: the best of all by (distance,
// id).
void merge_neighbors(const Threads& threads, Metric metric, std::span<const NeighborsView> parts,
                     MatrixView<Id> ids, MatrixView<float> distances);

}  // namespace nearwise
