// Neighbours of rows in the files of a plan: what groups found, and what blocks keep of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/neighbor_entry.h"
#include "io/container_reader.h"
#include "plan/graph_work.h"

namespace nearwise::plan {

// What all groups of a pass found: runs of rows in ascending order.
class FoundRows {
 public:
  // Of the rows [first_row, first_row + count) alone.
  FoundRows(const GraphWork& work, std::size_t pass, std::size_t first_row, std::size_t count);

  // Appends entries of a row's neighbours, the keys of equal pairs equal. Some may come twice.
  void append(std::uint32_t row, Metric metric, std::vector<NeighborEntry>& entries) const;

 private:
  struct Run {
    std::span<const std::uint32_t> rows;
    MatrixView<const std::uint32_t> ids;
    MatrixView<const float> distances;
  };
  std::vector<ContainerReader> readers_;
  std::vector<Run> runs_;
};

// The rows of one block after a pass.
struct MergedBlock {
  MergedBlock(const GraphWork& work, std::size_t pass, std::size_t block);

  ContainerReader reader;
  MatrixView<const std::uint32_t> ids;
  MatrixView<const float> distances;
  std::uint64_t updates = 0;  // entries that are new in this pass
};

// Those of all blocks.
std::vector<MergedBlock> merged_blocks(const GraphWork& work, std::size_t pass);

}  // namespace nearwise::plan
