// Searches of inverted files under a filter.
#pragma once

#include "index/list_search.h"
#include "nearwise/ivf.h"

namespace nearwise::index {

// The options are checked, and their filter allows or denies ids of all queries, or allows some of each
// query.
Neighbors search_filtered(const Context& context, const Ivf& index, const RowsView& queries, std::size_t k,
                          const IvfSearchOptions& options);

}  // namespace nearwise::index
