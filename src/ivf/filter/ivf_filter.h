// Searches of inverted files under a filter.
#pragma once

#include "ivf/list_search.h"
#include "nearwise/ivf.h"

namespace nearwise::ivf {

// The options are checked, and their filter allows or denies ids of all queries, or allows some of each
// query.
Neighbors search_filtered(const Context& context, const Ivf& index, const RowsView& queries, std::size_t k,
                          const IvfSearchOptions& options);

// Ivf::rerank, with checked arguments.
Neighbors rerank_entries(const Context& context, const IvfInternals::State& state, const RowsView& queries,
                         const MatrixView<const Id>& candidates, std::size_t k);

}  // namespace nearwise::ivf
