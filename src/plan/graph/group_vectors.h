// Copies of a block's vectors, sorted by group. `assign` writes them while it reads the block, and `build`
// reads those of its group sequentially; gathered from the vector file, the rows of one group would touch
// nearly all of its pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// block: rows of the file from first_row on. members: row numbers in the file, group by group, possibly
// repeated.
void write_vectors(const Context& context, const RowsView& block, std::size_t first_row,
                   std::span<const std::uint32_t> members, std::span<const std::uint64_t> group_ends,
                   ContainerWriter& writer);

// The vectors of one group in one block. Throws Error(corrupt).
struct GroupVectors {
  GroupVectors(const GraphWork& work, const ContainerReader& reader, std::size_t group);

  std::span<const std::uint32_t> rows;  // ascending
  const std::byte* vectors;             // [rows, row_bytes]
};

}  // namespace nearwise::plan
