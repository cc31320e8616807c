// Neighbour lists in the intermediate files of a plan: results of groups, and merged lists of blocks.
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

// The results of all groups of a pass, as runs of ascending rows.
class PartialNeighbors {
 public:
  // Restricted to rows [first_row, first_row + count).
  PartialNeighbors(const GraphWork& work, std::size_t pass, std::size_t first_row, std::size_t count);

  // Appends the neighbours of a row, possibly with duplicates.
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

// An unsigned integer of at most `most` in the metadata. Throws Error(corrupt).
std::uint64_t count_in(const ContainerReader& reader, const std::string& key, std::uint64_t most);
// List entries that a pass may add to these rows: `merge` completes short lists, which counts them once more.
std::uint64_t most_updates(const GraphWork& work, std::size_t rows);

// Appends a stored list; no_row ends it.
void append_entries(Metric metric, std::span<const std::uint32_t> ids, std::span<const float> distances,
                    bool is_new, std::vector<NeighborEntry>& entries);
// Writes the best entries without duplicates as a stored list. Returns the number of new ones.
std::uint64_t put_best(Metric metric, std::vector<NeighborEntry>& entries, std::span<std::uint32_t> ids,
                       std::span<float> distances);

// The lists of one block after a pass.
struct MergedBlock {
  // Read from the output of `task`; prefix: of the section names.
  MergedBlock(const GraphWork& work, std::size_t block, const std::string& task,
              const std::string& prefix = "");

  ContainerReader reader;
  MatrixView<const std::uint32_t> ids;
  MatrixView<const float> distances;
  std::uint64_t updates = 0;  // entries that are new in this pass
};

// Of all blocks.
std::vector<MergedBlock> merged_blocks(const GraphWork& work, std::size_t pass);

}  // namespace nearwise::plan
