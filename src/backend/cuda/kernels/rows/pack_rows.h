// Packs rows of any element type for matrix products: centred or normalised, rounded, with bias columns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/encoding.h"
#include "core/math/score_bound.h"
#include "nearwise/types.h"

namespace nearwise::gpu {

// Over all rows packed so far. Lengths are non-negative, so their bits as integers have the same order.
struct PackedSummary {
  unsigned long long longest_norm = 0;
  unsigned long long longest_residual = 0;
  // Lowest row with NaN or infinity; unchanged if there is none.
  unsigned long long first_bad_row = 0;
};

// Columns after the elements of a packed row, so that the product of two rows includes the bias of the score.
enum class Bias : std::uint8_t {
  none,
  minus_one,  // queries: in each of bias_columns()
  half_norm,  // base rows: half the squared norm, split into as many parts
};

// All pointers are to device memory.
struct PackTask {
  const std::byte* rows = nullptr;  // aligned to their element type
  std::size_t stride_bytes = 0;
  std::size_t count = 0;
  std::size_t first_row = 0;  // index of the first row, for first_bad_row
  std::uint32_t dim = 0;
  std::uint32_t width = 0;        // numbers per packed row; zero-padded after elements and bias
  const float* centre = nullptr;  // [dim] subtracted; null: none
  bool normalise = false;         // to norm 1; a zero row stays zero
  Bias bias = Bias::none;
  std::byte* out = nullptr;    // [count, width]
  Lengths* lengths = nullptr;  // [count], or null
  PackedSummary* summary = nullptr;
};

void launch_pack_rows(cudaStream_t stream, ElementType type, Encoding encoding, const PackTask& task);

}  // namespace nearwise::gpu
