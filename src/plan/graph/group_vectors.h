// The vectors of a block's rows, those of every group together: assign writes them in passing, as it reads the block, and build
// reads its group's from front to back. Gathered from the file of vectors, the rows of every group would take nearly all of its
// pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// block: rows of the file from first_row on. members: rows of the file, those of each group together up to its end; some may be
// there twice.
void write_vectors(const Context& context, const RowsView& block, std::size_t first_row,
                   std::span<const std::uint32_t> members, std::span<const std::uint64_t> group_ends,
                   ContainerWriter& writer);

// Of one group. Throws Error(corrupt).
struct GroupVectors {
  GroupVectors(const GraphWork& work, const ContainerReader& reader, std::size_t group);

  std::span<const std::uint32_t> rows;  // ascending
  const std::byte* vectors;             // [rows, row_bytes]
};

}  // namespace nearwise::plan
