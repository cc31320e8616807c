// All pairs of vectors within a threshold.
#pragma once

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct ThresholdJoinOptions {
  Metric metric = Metric::sqeuclidean;
};

// All pairs of rows whose reported distance is at most `threshold` (inner_product: at least), each once:
// entry i lists the rows j > i that form a pair with row i, in ascending order. Distances are computed with
// row i as the query. Needs memory for two copies of the pairs, in addition to that of a search. Throws
// Error(invalid_argument) if the threshold is NaN, Error(unsupported) on a CUDA device.
RangeNeighbors threshold_join(const Context& context, RowsView rows, float threshold,
                              const ThresholdJoinOptions& options = {});

}  // namespace nearwise
