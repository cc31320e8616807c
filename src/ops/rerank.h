// The best of some candidates, by their distance from the rows themselves.
#pragma once

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// candidates: [queries, any number] rows of `rows`, no_id for none. found: [queries, k] out, best first by (reported
// distance, id), short rows padded. Rows and queries are on the host.
void rerank(const Context& context, const RowsView& queries, const RowsView& rows, Metric metric,
            MatrixView<const Id> candidates, Neighbors& found);

}  // namespace nearwise
