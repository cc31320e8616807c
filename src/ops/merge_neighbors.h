// Joins answers over disjoint parts of a base into the answer over all of it.
#pragma once

#include <span>

#include "core/parallel.h"
#include "nearwise/matrix.h"
#include "nearwise/merge_neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// Every part [queries, k'] is in order, padded with no_id. Out [queries, k]: the best of all, by (distance, id).
void merge_neighbors(const Threads& threads, Metric metric, std::span<const NeighborsView> parts,
                     MatrixView<Id> ids, MatrixView<float> distances);

}  // namespace nearwise
