// A graph without its removed rows.
#pragma once

#include <cstddef>
#include <memory>

#include "core/memory.h"
#include "graph_index/searched_graph.h"
#include "nearwise/context.h"

namespace nearwise::graph_index {

// Rows that are pruned at a time; bounds the memory of their candidates, up to degree^2 for each.
inline constexpr std::size_t compacted_at_once = 4096;

// Whether a change leaves removed rows out: from more than a quarter on. Searches become slower with
// them, and edges lead to them.
inline bool has_many_removed(std::size_t live, std::size_t rows) { return rows - live > rows / 4; }

// Rows in ascending order of their ids. A row whose edges led to removed rows takes over what edges these
// had. live: of the rows of the graph; none: all. budget: of the memory that the new graph keeps.
SearchedGraph compacted(const Context& context, const std::shared_ptr<MemoryBudget>& budget,
                        const SearchedGraph& graph, const RowBits& live);

}  // namespace nearwise::graph_index
