// Robust pruning of candidate edges (backend/graph_search.h), a warp per row.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace nearwise::gpu {

// All pointers are to device memory.
struct PruneTask {
  const std::uint8_t* codes = nullptr;  // [all rows, row_bytes]
  std::uint32_t row_bytes = 0;
  std::uint32_t count = 0;                    // rows to prune
  const std::uint32_t* rows = nullptr;        // [count] their numbers
  const std::uint32_t* offsets = nullptr;     // [count + 1] of the candidates of each
  const std::uint32_t* candidates = nullptr;  // in any order, with repetitions
  std::uint32_t degree = 0;
  bool keep_short_lists = false;  // as in PruneEdgesArgs
  std::int32_t* edges = nullptr;  // [count, degree] out
};

void launch_prune_edges(cudaStream_t stream, const PruneTask& task);

}  // namespace nearwise::gpu
