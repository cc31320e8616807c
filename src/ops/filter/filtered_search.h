// Exact search under a filter. Results are those of a search of the allowed rows alone, with the row numbers
// of the whole base, bit for bit.
#pragma once

#include "nearwise/exact.h"
#include "nearwise/filter.h"
#include "ops/exact_search.h"

namespace nearwise {

// Throws Error(invalid_argument) if the filter has lists for another number of queries.
void check_filter(const char* operation, const Filter& filter, std::size_t queries);

// Results of queries that find nothing.
Neighbors padding(std::size_t queries, std::size_t k, Metric metric);

// For scans that cannot leave out ids of single queries, after a search for more neighbours: the first k of
// each query that it does not deny. Short rows are padded.
Neighbors drop_denied(const Neighbors& found, std::size_t k, const DeniedIds& denied, Metric metric);

// As search_rows() of exact_knn.h.
Neighbors search_allowed(const Context& context, const RowsView& queries, const RowsView& base, std::size_t k,
                         Metric metric, const PreparedBase* prepared, const Filter& filter);

// As search_range_rows() of range_search.h.
RangeNeighbors search_range_allowed(const Context& context, const RowsView& queries, const RowsView& base,
                                    float radius, Metric metric, const PreparedBase* prepared,
                                    const Filter& filter);

}  // namespace nearwise
