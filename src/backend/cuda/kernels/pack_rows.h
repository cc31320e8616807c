// Rows of any element type in the form that products are made of: f32, moved or scaled, with a column for the bias.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/score_bound.h"
#include "nearwise/types.h"

namespace nearwise::gpu {

// Of all rows packed so far. Lengths are never negative: as integers their bits have the same order.
struct PackedSummary {
  unsigned long long longest_norm = 0;
  unsigned long long longest_residual = 0;
  unsigned long long first_bad_row =
      0;  // the lowest with NaN or infinity; where there is none, what it was before
};

// What stands in column `dim` of a packed row, so that the product of two rows includes the bias of a score.
enum class BiasColumn : std::uint8_t {
  none,
  minus_one,    // queries
  half_square,  // base rows: half the squared length
};

// All pointers are to device memory.
struct PackTask {
  const std::byte* rows = nullptr;  // aligned to their elements
  std::size_t stride_bytes = 0;
  std::size_t count = 0;
  std::size_t first_row = 0;  // the number of the first of them, for first_bad_row
  std::uint32_t dim = 0;
  std::uint32_t width = 0;  // floats of a packed row; what is left behind dim and bias is filled with zeros
  const float* centre = nullptr;  // [dim] subtracted; null: none
  bool normalise = false;         // to length 1; a zero row stays zero
  BiasColumn bias = BiasColumn::none;
  float* out = nullptr;        // [count, width]
  Lengths* lengths = nullptr;  // [count], or null
  PackedSummary* summary = nullptr;
};

void launch_pack_rows(cudaStream_t stream, ElementType type, const PackTask& task);

}  // namespace nearwise::gpu
