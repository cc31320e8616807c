// Rows of any element type in the form that products are made of: moved or scaled, rounded, with columns for the bias.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/encoding.h"
#include "core/score_bound.h"
#include "nearwise/types.h"

namespace nearwise::gpu {

// Of all rows packed so far. Lengths are never negative: as integers their bits have the same order.
struct PackedSummary {
  unsigned long long longest_norm = 0;
  unsigned long long longest_residual = 0;
  // The lowest with NaN or infinity; where there is none, what it was before.
  unsigned long long first_bad_row = 0;
};

// What stands behind the elements of a packed row, so that the product of two rows includes the bias of a score.
enum class Bias : std::uint8_t {
  none,
  minus_one,  // queries: in each of bias_columns()
  half_norm,  // base rows: half the squared length, in as many parts that add up to it
};

// All pointers are to device memory.
struct PackTask {
  const std::byte* rows = nullptr;  // aligned to their elements
  std::size_t stride_bytes = 0;
  std::size_t count = 0;
  std::size_t first_row = 0;  // the number of the first of them, for first_bad_row
  std::uint32_t dim = 0;
  std::uint32_t width = 0;  // numbers of a packed row; what is left behind dim and bias is filled with zeros
  const float* centre = nullptr;  // [dim] subtracted; null: none
  bool normalise = false;         // to length 1; a zero row stays zero
  Bias bias = Bias::none;
  std::byte* out = nullptr;    // [count, width]
  Lengths* lengths = nullptr;  // [count], or null
  PackedSummary* summary = nullptr;
};

void launch_pack_rows(cudaStream_t stream, ElementType type, Encoding encoding, const PackTask& task);

}  // namespace nearwise::gpu
