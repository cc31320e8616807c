// The edges of new rows of a search graph, and those of other rows to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory.h"
#include "graph_index/searched_graph.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::graph_index {

// Lists that are to be put into the graph.
struct InsertedEdges {
  Buffer<std::uint32_t> rows;          // whose lists change, ascending; all new rows are at the end
  Buffer<std::int32_t> lists;          // [rows, degree]
  std::vector<std::uint32_t> entries;  // new rows to begin searches with, ascending

  void write_to(MatrixView<std::int32_t> edges) const noexcept;
};

struct NewRows {
  MatrixView<const std::uint8_t> codes;  // of the rows of the graph, then of the new ones
  RowsView vectors;                      // of the new rows
  RowBits live = {};                     // rows of the graph that may be targets of their edges
  std::size_t beam = 0;                  // of the searches for their neighbours
};

// Candidates of a new row are what a search of the graph finds, and its nearest new rows. The graph itself is
// not changed. Every new row can be reached from the rows of the graph, or is an entry.
InsertedEdges insert_edges(const Context& context, const SearchedGraph& graph, const NewRows& added);

}  // namespace nearwise::graph_index
