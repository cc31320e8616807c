// Input rows of additive encoding (codes/additive_codewords.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// All pointers are to device memory.
struct AdditiveRowsTask {
  const float* rows = nullptr;  // [count, dim]
  std::uint32_t count = 0;
  std::uint32_t dim = 0;
  const double* offset = nullptr;  // [dim]
  double unit = 1;
  double longest = 0;
  std::uint32_t width = 0;        // at least dim
  float* values = nullptr;        // [count, width] output: (x - offset) * unit, zero-padded
  double* shrinks = nullptr;      // [count] output: factor that limits a row's norm to `longest`
  std::uint64_t* keys = nullptr;  // [count] output: keys of the rows' random numbers
};
void launch_additive_rows(cudaStream_t stream, const AdditiveRowsTask& task);

}  // namespace nearwise::gpu
