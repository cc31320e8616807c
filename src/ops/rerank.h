// Re-ranks candidates by their exact distances.
#pragma once

#include <functional>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// Writes the vector of an id [dim]; returns false if there is none.
using ReadVector = std::function<bool(Id id, double* out)>;

// candidates: [queries, n] ids, padded with no_id. reader: makes a ReadVector for each thread. found: output
// [queries, k], sorted by (reported distance, id) and padded. Queries are on the host.
void rerank(const Context& context, const RowsView& queries, Metric metric, MatrixView<const Id> candidates,
            const std::function<ReadVector()>& reader, Neighbors& found);

// Ids are row numbers.
void rerank(const Context& context, const RowsView& queries, const RowsView& rows, Metric metric,
            MatrixView<const Id> candidates, Neighbors& found);

}  // namespace nearwise
