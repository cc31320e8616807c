// Selection from rows on the device: choice of kernels, split of rows into parts, workspace.
//
// If there are few long rows, they are split into parts. The best of all parts of a row form a shorter row,
// from which the best are selected in the same way, until one part is left. Parts and equal keys in them are
// in column order, so ties by position stay ties by position.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/device/selection_task.h"
#include "backend/cuda/tuning/selection.h"

namespace nearwise::gpu {

inline constexpr std::size_t max_selection_columns = std::size_t{1} << 31;  // positions have 32 bits

class RowSelection {
 public:
  // 1 <= k <= cols <= max_selection_columns.
  RowSelection(std::size_t rows, std::size_t cols, std::size_t k, const tuning::RowSplit& cuts = {});

  // Device memory needed by run(), aligned to 256 bytes.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  // Queues all kernels. `task` has the constructor's cols and k, and at most its rows; parts are chosen here.
  void run(cudaStream_t stream, Ties ties, SelectionTask task, std::byte* workspace) const;

 private:
  struct Level {
    std::size_t cols = 0;
    std::size_t parts = 1;
    std::size_t values_offset = 0;  // output of the parts, in the workspace
    std::size_t ids_offset = 0;
  };

  void run_level(cudaStream_t stream, Ties ties, const SelectionTask& task, std::byte* workspace) const;

  std::size_t k_;
  std::vector<Level> levels_;  // the last level has one part
  std::size_t entries_offset_ = 0;
  std::size_t sorted_entries_offset_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace nearwise::gpu
