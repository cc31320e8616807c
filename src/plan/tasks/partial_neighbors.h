// Neighbours of rows in the files of a plan: what groups found, and what blocks keep of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/neighbor_entry.h"
#include "io/container/container_reader.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// What all groups of a pass found: runs of rows in ascending order.
class PartialNeighbors {
 public:
  // Of the rows [first_row, first_row + count) alone.
  PartialNeighbors(const GraphWork& work, std::size_t pass, std::size_t first_row, std::size_t count);

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

// A whole number in the metadata of a file. Throws Error(corrupt).
std::uint64_t count_in(const ContainerReader& reader, const std::string& key);

// Appends the neighbours that a row has in a file.
void append_entries(Metric metric, std::span<const std::uint32_t> ids, std::span<const float> distances,
                    bool is_new, std::vector<NeighborEntry>& entries);
// Writes the best of these, each of which may be there twice, as a row of a file. Returns how many are new.
std::uint64_t put_best(Metric metric, std::vector<NeighborEntry>& entries, std::span<std::uint32_t> ids,
                       std::span<float> distances);

// The rows of one block after a pass.
struct MergedBlock {
  // As a task has written them; prefix: of the names of its sections.
  MergedBlock(const GraphWork& work, std::size_t block, const std::string& task,
              const std::string& prefix = "");

  ContainerReader reader;
  MatrixView<const std::uint32_t> ids;
  MatrixView<const float> distances;
  std::uint64_t updates = 0;  // entries that are new in this pass
};

// Those of all blocks.
std::vector<MergedBlock> merged_blocks(const GraphWork& work, std::size_t pass);

}  // namespace nearwise::plan
