// The centroids of partitions, by k-means on a sample.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise::plan {

// sample: sized for the largest number of partitions; for fewer, every n-th row of it suffices.
Matrix<float> train_centroids(const Context& context, Metric metric, const RowsView& sample,
                              std::size_t partitions);

}  // namespace nearwise::plan
