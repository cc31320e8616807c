// Exact k-NN search in a base that may be packed already.
#pragma once

#include "nearwise/exact.h"
#include "ops/exact_search.h"

namespace nearwise {

void check_k(const char* operation, std::size_t k, std::size_t base_rows, const KnnOptions& options);

// Checks the arguments. prepared: the packed base for queries of this type, or null.
Neighbors search_knn(const Context& context, const RowsView& queries, const RowsView& base, std::size_t k,
                     const KnnOptions& options, const PreparedBase* prepared);

// The k best of the selected rows, padded. A selection by bits needs a packed base. more_bytes: that the
// caller needs in addition to the result.
Neighbors search_rows(const Context& context, const RowsView& queries, const RowsView& base, std::size_t k,
                      Metric metric, const PreparedBase* prepared, const RowSelection& selection,
                      std::uint64_t more_bytes = 0);

// Memory that search_rows() needs at least, with its result, whatever the numbers in the rows are. The rows
// may be shapes only.
std::uint64_t least_knn_bytes(const Context& context, const RowsView& queries, const RowsView& base,
                              std::size_t k, Metric metric);

}  // namespace nearwise
