// The edges of a search graph, from neighbour lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory.h"
#include "graph_index/edges/edge_changes.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise {
class ProgressMeter;
}

namespace nearwise::graph_index {

// The rows that have an edge to each row, ascending.
struct ReverseEdges {
  Buffer<std::uint64_t> offsets;  // [rows + 1]
  Buffer<std::uint32_t> sources;

  std::span<const std::uint32_t> of(std::size_t row) const {
    return sources.span().subspan(offsets[row], offsets[row + 1] - offsets[row]);
  }
};
ReverseEdges reverse_edges(const Context& context, MatrixView<const std::int32_t> edges);

// The lists of consecutive rows.
struct EdgeBlock {
  std::size_t first_row = 0;
  MatrixView<const std::int32_t> lists;         // [rows, any] candidates; no_edge ends a list
  std::span<const std::uint64_t> offsets = {};  // of reverse edges, as in PruneEdgesArgs; empty: none
  std::span<const std::uint32_t> sources = {};
  MatrixView<std::int32_t> edges;  // [rows, degree] out
};
// Prunes the lists of a block. With reverse edges, only those that are too long.
void prune_block(const Context& context, MatrixView<const std::uint8_t> codes, const EdgeBlock& block,
                 ProgressMeter* progress = nullptr);

// Prunes the lists [rows, any], adds the reverse of every edge, and prunes again: [rows, degree] on a budget.
Buffer<std::int32_t> build_edges(const Context& context, MemoryBudget& budget,
                                 MatrixView<const std::uint8_t> codes, MatrixView<const std::int32_t> lists,
                                 std::size_t degree);

// Adds edges until every row can be reached from every other: in a ring among rows with the same code,
// between separate components, and where edges lead in one direction only.
void connect_rows(const Context& context, MatrixView<const std::uint8_t> codes, std::size_t code_dim,
                  MatrixView<std::int32_t> edges);
// The edges that it would add.
EdgeChanges connect_rows(const Context& context, MatrixView<const std::uint8_t> codes, std::size_t code_dim,
                         EdgeLists lists);
// What that takes, in most cases; where edges lead in one direction only, more, as far as there is memory.
std::uint64_t connecting_bytes(std::size_t rows);

}  // namespace nearwise::graph_index
