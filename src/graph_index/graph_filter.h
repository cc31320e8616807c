// Searches of a graph under a filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/filter.h"
#include "graph_index/graph_index_state.h"
#include "nearwise/context.h"
#include "nearwise/filter.h"

namespace nearwise::graph_index {

// The rows that a filter allows to all queries, without removed ones; null: every row. Made once for a filter
// and a state of the index.
std::shared_ptr<const AllowedRows> allowed_rows(const SearchedGraph& graph, const Filter& filter);

// The lists that a filter has for single queries, as rows.
Filter query_rows(const GraphIndexInternals::State& state, const Filter& filter, std::size_t queries);

struct GraphFilterShape {
  std::size_t queries = 0;
  std::size_t rows = 0;
  std::size_t allowed = 0;    // at least 1
  std::size_t beam = 0;       // without a filter
  std::size_t row_bytes = 0;  // of a vector
  std::size_t code_bytes = 0;
  std::size_t degree = 0;
};

struct GraphFilterPlan {
  bool exact = false;    // all allowed vectors are compared
  std::size_t beam = 0;  // that finds as many allowed rows as the beam without a filter finds rows
  // Estimated time of a query on one thread, in ns.
  double exact_cost = 0;
  double graph_cost = 0;
};

// Compares the estimated costs.
GraphFilterPlan plan_graph_filter(const GraphFilterShape& shape);

}  // namespace nearwise::graph_index
