// Products of rows in f64: with the columns of a matrix, and of the columns of two matrices. Elements are f32, whose products
// f64 holds exactly, and sums have the order of the CPU: the same bits.
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
  const double* offset = nullptr;  // [width] that sums begin with
  std::uint32_t width = 0;
  float* rotated = nullptr;  // [count, width]
};
void launch_rotate_rows(cudaStream_t stream, const RotateTask& task);

struct CrossTask {
  const float* left = nullptr;  // [count, left_columns]
  std::uint32_t left_columns = 0;
  const float* right = nullptr;  // [count, right_columns]
  std::uint32_t right_columns = 0;
  std::uint32_t count = 0;
  double* sums = nullptr;  // [left_columns, right_columns] added to, one row after the other
};
void launch_cross_products(cudaStream_t stream, const CrossTask& task);

}  // namespace nearwise::gpu
