// Sums of the rows of clusters in f64, in row order, and of their squared distances from a centroid, with the
// CPU's bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "nearwise/types.h"

namespace nearwise::gpu {

// Consecutive rows of one cluster.
struct RowSegment {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool continues = false;  // adds to the previous contents of its sums
};

// All pointers are to device memory.
struct SumRowsTask {
  const std::byte* rows = nullptr;  // [count, dim] contiguous
  std::size_t count = 0;
  std::uint32_t dim = 0;
  bool unit_length = false;               // normalise rows first; a zero row stays zero
  const RowSegment* segments = nullptr;   // [segment_count] covering all rows in order
  const std::uint32_t* owners = nullptr;  // [count] the segment of each row
  const float* centroids = nullptr;       // [segment_count, dim]
  std::size_t segment_count = 0;
  double* squares = nullptr;  // [count] scratch: squared distances from the centroid (core/distance.h)
  double* lengths = nullptr;  // [count] scratch, with unit_length
  double* sums = nullptr;     // [segment_count, dim + 1] output: sums of rows, sum of squared distances
};

void launch_sum_rows(cudaStream_t stream, ElementType type, const SumRowsTask& task);

}  // namespace nearwise::gpu
