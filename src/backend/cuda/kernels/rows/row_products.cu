#include "backend/cuda/kernels/rows/row_products.h"

#include "backend/cuda/device/gpu.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned columns_per_block = 32;
constexpr unsigned row_threads = 4;
constexpr std::uint32_t rows_per_thread = 4;  // rows that share the loads of a column
constexpr unsigned rows_per_block = row_threads * rows_per_thread;
constexpr unsigned left_per_block = 4;

__global__ void rotate_rows(RotateTask task) {
  const std::uint32_t column = blockIdx.y * columns_per_block + threadIdx.x;
  const std::uint32_t first = blockIdx.x * rows_per_block + threadIdx.y * rows_per_thread;
  if (column >= task.width || first >= task.count) return;
  double sums[rows_per_thread];
  const float* rows[rows_per_thread];
#pragma unroll
  for (std::uint32_t i = 0; i < rows_per_thread; ++i) {
    sums[i] = task.offset[column];
    // Past the last row, the last row is repeated.
    rows[i] = task.rows + std::size_t{min(first + i, task.count - 1)} * task.dim;
  }
  for (std::uint32_t element = 0; element < task.dim; ++element) {
    const double column_element = __ldg(task.columns + std::size_t{element} * task.width + column);
#pragma unroll
    for (std::uint32_t i = 0; i < rows_per_thread; ++i)
      sums[i] += static_cast<double>(__ldg(rows[i] + element)) * column_element;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < rows_per_thread; ++i)
    if (first + i < task.count)
      task.rotated[(first + i) * task.rotated_stride + column] = static_cast<float>(sums[i]);
}

// One thread per sum.
__global__ void cross_products(CrossTask task) {
  const std::uint32_t right = blockIdx.x * columns_per_block + threadIdx.x;
  const std::uint32_t left = blockIdx.y * left_per_block + threadIdx.y;
  if (right >= task.right_columns || left >= task.left_columns) return;
  double* const out = task.sums + std::size_t{left} * task.right_columns + right;
  double sum = *out;
  for (std::uint32_t row = 0; row < task.count; ++row)
    sum += static_cast<double>(__ldg(task.left + std::size_t{row} * task.left_columns + left)) *
           static_cast<double>(__ldg(task.right + std::size_t{row} * task.right_columns + right));
  *out = sum;
}

unsigned blocks_for(std::uint32_t count, unsigned per_block) { return (count + per_block - 1) / per_block; }

}  // namespace

void launch_rotate_rows(cudaStream_t stream, const RotateTask& task) {
  if (task.count == 0) return;
  launch(rotate_rows, dim3(blocks_for(task.count, rows_per_block), blocks_for(task.width, columns_per_block)),
         dim3(columns_per_block, row_threads), 0, stream, task);
}

void launch_cross_products(cudaStream_t stream, const CrossTask& task) {
  if (task.count == 0) return;
  launch(
      cross_products,
      dim3(blocks_for(task.right_columns, columns_per_block), blocks_for(task.left_columns, left_per_block)),
      dim3(columns_per_block, left_per_block), 0, stream, task);
}

}  // namespace nearwise::gpu
