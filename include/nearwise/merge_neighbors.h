// Answers of searches in parts of a base, joined into the answer of a search in all of it.
//
// For those who search parts by themselves: in other processes, on other machines. Sharded (sharded.h) does it for parts
// in one process.
#pragma once

#include <cstddef>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// [queries, k'], as a search returns it: best first, the lower id first in a tie, no_id behind the last neighbour.
struct NeighborsView {
  MatrixView<const Id> ids;
  MatrixView<const float> distances;
};

// [queries, k]: the best of all parts, padded where they have fewer. The parts lie on the host, have the same queries, and
// no row in common; ids are numbered through already. At least one part is needed.
Neighbors merge_neighbors(const Context& context, Metric metric, std::span<const NeighborsView> parts,
                          std::size_t k);

}  // namespace nearwise
