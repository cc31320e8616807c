// Product codes of rows: the nearest codeword of every part, as knn with k = 1.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/codes/code_rows.h"

namespace nearwise::gpu {

// All pointers are to device memory.
struct NearestCodewordsTask {
  const float* rows = nullptr;  // [count, dim]
  std::uint32_t count = 0;      // at most 2^20
  DeviceCodebooks books;
  std::uint32_t code_bytes = 0;
  std::uint8_t* codes = nullptr;  // [count, code_bytes]
};

void launch_nearest_codewords(cudaStream_t stream, const NearestCodewordsTask& task);

}  // namespace nearwise::gpu
