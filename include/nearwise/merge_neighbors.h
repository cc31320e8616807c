// Merges the answers of searches in parts of a base into the answer of a search in all of it.
//
// For parts searched by other processes or machines. Sharded (sharded.h) does it for parts in one process.
#pragma once

#include <cstddef>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// [queries, k'] as a search returns it: best first, ties by lower id, no_id after the last neighbour.
struct NeighborsView {
  MatrixView<const Id> ids;
  MatrixView<const float> distances;
};

// [queries, k]: the best of all parts, padded with no_id. Needs at least one part. Parts are on the host,
// answer the same queries, and have no row in common; ids are those of the whole base.
Neighbors merge_neighbors(const Context& context, Metric metric, std::span<const NeighborsView> parts,
                          std::size_t k);

}  // namespace nearwise
