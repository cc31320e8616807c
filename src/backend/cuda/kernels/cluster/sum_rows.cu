#include "backend/cuda/kernels/cluster/sum_rows.h"

#include <cmath>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/group_sum.cuh"
#include "core/convert.h"

namespace nearwise::gpu {
namespace {

constexpr int rows_per_block = 16;
constexpr int columns_per_block = 128;
// Values of a column that are loaded before the first of them is added: memory answers for all at once.
constexpr std::uint32_t rows_ahead = 8;

// Eight threads a row.
template <typename T>
__global__ void measure_rows(SumRowsTask task) {
  const std::uint32_t lane = threadIdx.x % sum_group;
  const std::size_t number = std::size_t{blockIdx.x} * rows_per_block + threadIdx.x / sum_group;
  // All lanes of a warp meet in the sums: those without a row look at the last one again.
  const bool there = number < task.count;
  const std::size_t index = there ? number : task.count - 1;
  const T* const row = reinterpret_cast<const T*>(task.rows) + index * task.dim;
  const float* const centroid = task.centroids + std::size_t{task.owners[index]} * task.dim;

  double length = 1;
  if (task.unit_length) {
    double norm = 0;
    for (std::uint32_t i = lane; i < task.dim; i += sum_group) {
      const double x = to_float(row[i]);
      norm += x * x;
    }
    norm = group_sum(norm);
    length = norm > 0 ? std::sqrt(norm) : 1;
  }
  double square = 0;
  for (std::uint32_t i = lane; i < task.dim; i += sum_group) {
    const double x = to_float(row[i]);
    const double difference = (task.unit_length ? x / length : x) - static_cast<double>(centroid[i]);
    square += difference * difference;
  }
  square = group_sum(square);
  if (there && lane == 0) {
    task.squares[index] = square;
    if (task.unit_length) task.lengths[index] = length;
  }
}

// sum + at(first) + ... + at(end - 1), in this order.
template <typename At>
__device__ __forceinline__ double add_in_order(double sum, std::uint32_t first, std::uint32_t end,
                                               const At& at) {
  std::uint32_t i = first;
  for (; end - i >= rows_ahead; i += rows_ahead) {
    double values[rows_ahead];
#pragma unroll
    for (std::uint32_t ahead = 0; ahead < rows_ahead; ++ahead) values[ahead] = at(i + ahead);
#pragma unroll
    for (std::uint32_t ahead = 0; ahead < rows_ahead; ++ahead) sum += values[ahead];
  }
  for (; i < end; ++i) sum += at(i);
  return sum;
}

// A block has a segment and some columns, a thread one of them; the column behind the last is that of the squares.
template <typename T>
__global__ void sum_columns(SumRowsTask task) {
  const std::uint32_t column = blockIdx.y * columns_per_block + threadIdx.x;
  const RowSegment segment = task.segments[blockIdx.x];
  const std::uint32_t end = segment.first + segment.count;
  double* const out = task.sums + std::size_t{blockIdx.x} * (task.dim + 1) + column;
  const double start = segment.continues && column <= task.dim ? *out : 0.0;
  const T* const values = reinterpret_cast<const T*>(task.rows) + column;
  const auto value = [&](std::uint32_t row) {
    return static_cast<double>(to_float(values[std::size_t{row} * task.dim]));
  };
  if (column == task.dim)
    *out = add_in_order(start, segment.first, end, [&](std::uint32_t row) { return task.squares[row]; });
  else if (column < task.dim && task.unit_length)
    *out = add_in_order(start, segment.first, end,
                        [&](std::uint32_t row) { return value(row) / task.lengths[row]; });
  else if (column < task.dim)
    *out = add_in_order(start, segment.first, end, value);
}

}  // namespace

void launch_sum_rows(cudaStream_t stream, ElementType type, const SumRowsTask& task) {
  if (task.count == 0) return;
  const auto row_blocks = static_cast<unsigned>((task.count + rows_per_block - 1) / rows_per_block);
  const unsigned column_blocks = task.dim / columns_per_block + 1;  // of dim + 1 columns
  visit_element_type(type, [&](auto tag) {
    using T = decltype(tag);
    launch(measure_rows<T>, dim3(row_blocks), dim3(rows_per_block * sum_group), 0, stream, task);
    launch(sum_columns<T>, dim3(static_cast<unsigned>(task.segment_count), column_blocks),
           dim3(columns_per_block), 0, stream, task);
  });
}

}  // namespace nearwise::gpu
