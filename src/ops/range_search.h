// Search within a radius over a base that may have been prepared.
#pragma once

#include "nearwise/exact.h"
#include "ops/exact_search.h"

namespace nearwise {

// prepared: the base's blocks for queries of this type, or null.
RangeNeighbors search_range(const Context& context, const RowsView& queries, const RowsView& base,
                            float radius, const RangeOptions& options, const PreparedBase* prepared);

}  // namespace nearwise
