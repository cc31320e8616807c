// Reported distances (core/distance.h) of pairs of queries and rows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "nearwise/types.h"

namespace nearwise::gpu {

// A pair has a slot in a matrix [queries, columns] of keys, which determines its query. Without slots, all
// slots are filled in order, and columns are rows. All pointers are to device memory.
struct EvaluateTask {
  const float* queries = nullptr;  // [queries, dim]
  const std::byte* rows = nullptr;
  std::size_t stride_bytes = 0;
  std::uint32_t dim = 0;
  Metric metric = Metric::sqeuclidean;
  std::size_t pairs = 0;
  std::size_t columns = 0;
  const std::uint64_t* slots = nullptr;        // [pairs], or null
  const std::uint32_t* row_indices = nullptr;  // [pairs], with slots; null: row i belongs to pair i
  float* keys = nullptr;                       // [queries, columns] sort_key() of the reported distance
};

void launch_evaluate_rows(cudaStream_t stream, ElementType type, const EvaluateTask& task);

}  // namespace nearwise::gpu
