// Re-ranks candidates by their exact distances.
#pragma once

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// candidates: [queries, n] row numbers, padded with no_id. found: output [queries, k], sorted by (reported
// distance, id) and padded. Rows and queries are on the host.
void rerank(const Context& context, const RowsView& queries, const RowsView& rows, Metric metric,
            MatrixView<const Id> candidates, Neighbors& found);

}  // namespace nearwise
