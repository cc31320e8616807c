// Sums of the rows of clusters in f64, one row after the other, and of their squared distances from a centroid: the bits
// that the CPU computes.
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
  bool continues = false;  // adds to what is in its sums already
};

// All pointers are to device memory.
struct SumRowsTask {
  const std::byte* rows = nullptr;  // [count, dim] one after another
  std::size_t count = 0;
  std::uint32_t dim = 0;
  bool unit_length = false;               // rows are divided by their length first; a zero row stays zero
  const RowSegment* segments = nullptr;   // [segment_count] all rows, in their order
  const std::uint32_t* owners = nullptr;  // [count] the segment of each row
  const float* centroids = nullptr;       // [segment_count, dim]
  std::size_t segment_count = 0;
  double* squares =
      nullptr;  // [count] scratch: squared distances from the centroid, each as core/distance.h defines it
  double* lengths = nullptr;  // [count] scratch, with unit_length
  double* sums = nullptr;     // [segment_count, dim + 1] out: of the rows, and of the squared distances
};

void launch_sum_rows(cudaStream_t stream, ElementType type, const SumRowsTask& task);

}  // namespace nearwise::gpu
