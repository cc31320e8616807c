// Range search in a base that may be packed already.
#pragma once

#include "nearwise/exact.h"
#include "ops/exact_search.h"

namespace nearwise {

// prepared: the packed base for queries of this type, or null.
RangeNeighbors search_range(const Context& context, const RowsView& queries, const RowsView& base,
                            float radius, const RangeOptions& options, const PreparedBase* prepared);

}  // namespace nearwise
