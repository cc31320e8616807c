#include "backend/cuda/kernels/cluster/sum_rows.h"

#include <cmath>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/group_sum.cuh"
#include "core/convert.h"

namespace nearwise::gpu {
namespace {

constexpr int rows_per_block = 16;
constexpr int columns_per_block = 128;
// Values loaded before the first is added, so that their latencies overlap.
constexpr std::uint32_t unrolled_rows = 8;

// Eight threads per row.
template <typename T>
__global__ void squared_distances(SumRowsTask task) {
  const std::uint32_t lane = threadIdx.x % sum_group;
  const std::size_t number = std::size_t{blockIdx.x} * rows_per_block + threadIdx.x / sum_group;
  // All lanes take part in the sums: threads without a row repeat the last one.
  const bool in_range = number < task.count;
  const std::size_t index = in_range ? number : task.count - 1;
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
  if (in_range && lane == 0) {
    task.squares[index] = square;
    if (task.unit_length) task.lengths[index] = length;
  }
}

// sum + at(first) + ... + at(end - 1), in this order.
template <typename At>
__device__ __forceinline__ double add_in_order(double sum, std::uint32_t first, std::uint32_t end,
                                               const At& at) {
  std::uint32_t i = first;
  for (; end - i >= unrolled_rows; i += unrolled_rows) {
    double values[unrolled_rows];
#pragma unroll
    for (std::uint32_t offset = 0; offset < unrolled_rows; ++offset) values[offset] = at(i + offset);
#pragma unroll
    for (std::uint32_t offset = 0; offset < unrolled_rows; ++offset) sum += values[offset];
  }
  for (; i < end; ++i) sum += at(i);
  return sum;
}

// A block has a segment and a range of columns, a thread one column; column dim is that of the squared
// distances.
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
    launch(squared_distances<T>, dim3(row_blocks), dim3(rows_per_block * sum_group), 0, stream, task);
    launch(sum_columns<T>, dim3(static_cast<unsigned>(task.segment_count), column_blocks),
           dim3(columns_per_block), 0, stream, task);
  });
}

}  // namespace nearwise::gpu
