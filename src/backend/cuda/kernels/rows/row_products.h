// f64 products of rows with the columns of a matrix, and of the columns of two matrices. f64 holds products
// of f32 elements exactly, and sums have the CPU's order, hence the same bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

// All pointers are to device memory.
struct RotateTask {
  const float* rows = nullptr;  // [count, dim]
  std::uint32_t count = 0;
  std::uint32_t dim = 0;
  const float* columns = nullptr;  // [dim, width]
  const double* offset = nullptr;  // [width] initial values of the sums
  std::uint32_t width = 0;
  float* rotated = nullptr;  // [count, width]
  std::size_t rotated_stride = 0;
};
void launch_rotate_rows(cudaStream_t stream, const RotateTask& task);

struct CrossTask {
  const float* left = nullptr;  // [count, left_columns]
  std::uint32_t left_columns = 0;
  const float* right = nullptr;  // [count, right_columns]
  std::uint32_t right_columns = 0;
  std::uint32_t count = 0;
  double* sums = nullptr;  // [left_columns, right_columns] accumulated in row order
};
void launch_cross_products(cudaStream_t stream, const CrossTask& task);

}  // namespace nearwise::gpu
