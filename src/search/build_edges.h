// The edges of a search graph, from neighbour lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "search/entry_tree.h"

namespace nearwise::search {

// The rows that have an edge to each row, ascending.
struct ReverseEdges {
  Buffer<std::uint64_t> offsets;  // [rows + 1]
  Buffer<std::uint32_t> sources;

  std::span<const std::uint32_t> of(std::size_t row) const {
    return sources.span().subspan(offsets[row], offsets[row + 1] - offsets[row]);
  }
};
ReverseEdges reverse_edges(const Context& context, MatrixView<const std::int32_t> edges);

// Prunes the lists [rows, any], adds the reverse of every edge, and prunes again: [rows, degree] on a budget.
Buffer<std::int32_t> build_edges(const Context& context, MemoryBudget& budget,
                                 MatrixView<const std::uint8_t> codes, MatrixView<const std::int32_t> lists,
                                 std::size_t degree);

// Adds edges until every row can be reached from every other: in a ring among rows with the same code,
// between separate components, and where edges lead in one direction only.
void connect_rows(const Context& context, MatrixView<const std::uint8_t> codes, std::size_t code_dim,
                  MatrixView<std::int32_t> edges);

}  // namespace nearwise::search
