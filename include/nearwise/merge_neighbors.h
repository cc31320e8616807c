// Merges the results of searches in disjoint parts of a base.
//
// For parts searched in other processes or on other machines. Sharded (sharded.h) merges parts within one
// process.
#pragma once

#include <cstddef>
#include <span>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// [queries, k'], as returned by a search: best first, ties by lower id, padded with no_id.
struct NeighborsView {
  MatrixView<const Id> ids;
  MatrixView<const float> distances;
};

// [queries, k]: the best of all parts, padded if they have fewer. Parts are on the host, answer the same
// queries and share no ids. There must be at least one.
Neighbors merge_neighbors(const Context& context, Metric metric, std::span<const NeighborsView> parts,
                          std::size_t k);

}  // namespace nearwise
