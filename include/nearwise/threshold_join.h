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

// All pairs of rows whose reported distance is at most `threshold` (inner_product: at least), each once: the
// elements of row i are the rows above i that it forms a pair with, ascending. The distance is that of row i
// as the query. Needs memory for the pairs, twice, in addition to that of a search.
RangeNeighbors threshold_join(const Context& context, RowsView rows, float threshold,
                              const ThresholdJoinOptions& options = {});

}  // namespace nearwise
