// Lookup tables of queries: every part of a query (for additive codes: the whole query) against all codewords
// of the part.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/codes/code_rows.h"

namespace nearwise::gpu {

enum class TableEntry : std::uint8_t {
  square,           // squared distance as reported
  product,          // inner product as reported
  negated_product,  // of the query minus the centre
};

// All pointers are to device memory.
struct PartTablesTask {
  const float* queries = nullptr;  // [count, dim]
  std::size_t count = 0;           // at most 65535
  const float* centre = nullptr;   // [dim] for negated products; null: no centre
  DeviceCodebooks books;
  float* tables = nullptr;  // [count, parts * 2^bits]
};

void launch_part_tables(cudaStream_t stream, TableEntry entry, const PartTablesTask& task);

}  // namespace nearwise::gpu
