// Exact k-nearest-neighbour search.
//
// The contract of every answer: best first, the lower id wins a tie; the reported distance is a sum in f64 in a
// fixed order (8 lanes, fixed tree, no FMA) rounded once to f32, the same bits on every instruction set, device
// and number of threads; no true neighbour is lost to the rounding of a faster product.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

struct KnnOptions {
  Metric metric = Metric::sqeuclidean;
  ShortRows short_rows = ShortRows::refuse;
};

// Queries and base may have different element types. A row with NaN or infinity is refused by its number.
// Works in tiles within the context's memory limit; the base may be a mapped file larger than memory.
Neighbors knn(const Context& context, RowsView queries, RowsView base, std::size_t k,
              const KnnOptions& options = {});

}  // namespace nearwise
