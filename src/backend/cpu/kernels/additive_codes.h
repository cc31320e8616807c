// The loops of additive encoding: tables of products as 16-bit integers, the best codeword of one codebook while the others
// stay, and the cost of codes. Every target computes the same bits: integers add up exactly or saturate in one fixed order,
// and f32 sums belong to one lane each and are made without FMA.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"
#include "codes/additive_codewords.h"

namespace nearwise::cpu {

// out(row, word) = (start[word] + factor * <row, word>) * scale, rounded, within the range of 16 bits.
struct ScaledProductsArgs {
  const float* rows = nullptr;
  std::size_t stride = 0;  // elements from one row to the next
  std::size_t count = 0;   // of rows
  std::size_t dim = 0;
  const float* columns = nullptr;  // [dim, additive_codebook_size]
  const float* start = nullptr;    // [additive_codebook_size]
  float factor = 0;
  float scale = 0;
  std::int16_t* out = nullptr;  // [count, additive_codebook_size]
};

// Chooses one code of every row that is not settled: the codeword with the least sum of its own entry and those in the rows
// that the other codes name in the tables; the lower number in a tie.
struct ConditionalModesArgs {
  const std::int16_t* own = nullptr;  // [count, additive_codebook_size]
  std::uint8_t* codes = nullptr;      // [count, stride]
  std::size_t stride = 0;
  std::size_t count = 0;
  std::size_t code = 0;  // which one is chosen
  // The others, and a table [additive_codebook_size of the other, additive_codebook_size of this one] for each.
  const std::size_t* others = nullptr;
  const std::int16_t* const* tables = nullptr;
  std::size_t other_count = 0;
  // [count] bit i: code i has been chosen since another code changed. Choosing it again would change nothing.
  std::uint32_t* settled = nullptr;
};

// Squared distances of rows from the sums of their codewords.
struct AdditiveCostsArgs {
  const float* rows = nullptr;  // [count, width]
  std::size_t count = 0;
  std::size_t width = 0;             // a multiple of cost_lanes
  const float* codewords = nullptr;  // [codebooks * additive_codebook_size, width]
  std::size_t codebooks = 0;
  const std::uint8_t* codes = nullptr;  // [count, codebooks]
  float* costs = nullptr;               // [count] out
};

struct AdditiveKernels {
  void (*scaled_products)(const ScaledProductsArgs&) noexcept;
  // Returns how many rows were not settled.
  std::size_t (*conditional_modes)(const ConditionalModesArgs&) noexcept;
  void (*costs)(const AdditiveCostsArgs&) noexcept;
};
const AdditiveKernels& additive_kernels(InstructionSet set);

}  // namespace nearwise::cpu
