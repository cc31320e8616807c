// One traversal of the graph per query, for searches and calibration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/filter.h"
#include "graph_index/graph_index_state.h"
#include "nearwise/context.h"
#include "nearwise/neighbors.h"

namespace nearwise::graph_index {

struct RowSearch {
  std::size_t k = 1;
  GraphBeam beam = {};
  RowBits allowed = {};                        // as in SearchGraphArgs
  std::span<const std::uint32_t> absent = {};  // as in SearchGraphArgs
  std::span<std::uint8_t> is_starved = {};     // as in SearchGraphArgs
};

// Throws Error(invalid_argument) unless they are on the host and match the index.
void check_queries(const char* operation, const Context& context, const RowsView& queries,
                   const SearchedGraph& graph);

// Row numbers and distances [queries, min(k, rows)]. Queries are finite.
Neighbors search_rows(const Context& context, const SearchedGraph& graph, const RowsView& queries,
                      const RowSearch& options);

// The smallest beam that reaches the target on a sample. The options are checked; there are 2 rows at least.
GraphCalibration calibrate_graph(const Context& context, const SearchedGraph& graph,
                                 const GraphCalibrationOptions& options);

}  // namespace nearwise::graph_index
