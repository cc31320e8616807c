// Range search in a base that may be packed already.
#pragma once

#include "nearwise/exact.h"
#include "ops/exact_search.h"

namespace nearwise {

// Checks the arguments. prepared: the packed base for queries of this type, or null.
RangeNeighbors search_range(const Context& context, const RowsView& queries, const RowsView& base,
                            float radius, const RangeOptions& options, const PreparedBase* prepared);

// All rows of the selection, which names no list of rows.
RangeNeighbors search_range_rows(const Context& context, const RowsView& queries, const RowsView& base,
                                 float radius, Metric metric, const PreparedBase* prepared,
                                 const RowSelection& selection);

// Best first, then by id.
void sort_range_row(Metric metric, RangeRow& row);

}  // namespace nearwise
