// Selection of rows that are on the device: which kernels, how rows are cut into parts, what memory that takes.
//
// Few long rows are cut; the best of the parts, side by side, are rows again, shorter ones, from which the best are
// selected in the same way until one part is left. Parts are in the order of columns, and so are equal keys in them:
// ties by position remain ties by position.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/device/selection_task.h"
#include "backend/cuda/tuning/selection.h"

namespace nearwise::gpu {

inline constexpr std::size_t longest_selection_row = std::size_t{1} << 31;  // positions have 32 bits

class RowSelection {
 public:
  // k from 1 to cols, cols at most longest_selection_row.
  RowSelection(std::size_t rows, std::size_t cols, std::size_t k, const tuning::RowCuts& cuts = {});

  // Device memory that run() needs, aligned to 256 bytes.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  // Queues all kernels. `task` has cols and k of the constructor, and at most its rows; parts are chosen here.
  void run(cudaStream_t stream, Ties ties, SelectionTask task, std::byte* workspace) const;

 private:
  struct Level {
    std::size_t cols = 0;
    std::size_t parts = 1;
    std::size_t values_offset = 0;  // in the workspace: what the parts hand on
    std::size_t ids_offset = 0;
  };

  void run_level(cudaStream_t stream, Ties ties, const SelectionTask& task, std::byte* workspace) const;

  std::size_t k_;
  std::vector<Level> levels_;  // the last has one part
  std::size_t entries_offset_ = 0;
  std::size_t sorted_entries_offset_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace nearwise::gpu
