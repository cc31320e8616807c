// Kernels of additive encoding: tables of products as 16-bit integers, the best codeword of one codebook
// given the others, and the cost of codes. Every target computes the same bits: integer sums are exact or
// saturate in a fixed order, and every f32 sum is computed in one lane without FMA.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"
#include "codes/additive_codewords.h"

namespace nearwise::cpu {

// out(row, codeword) = (start[codeword] + factor * <row, codeword>) * scale, rounded and clamped to 16 bits.
struct ScaledProductsArgs {
  const float* rows = nullptr;
  std::size_t stride = 0;  // in elements
  std::size_t count = 0;   // rows
  std::size_t dim = 0;
  const float* columns = nullptr;  // [dim, additive_codebook_size]
  const float* start = nullptr;    // [additive_codebook_size]
  float factor = 0;
  float scale = 0;
  std::int16_t* out = nullptr;  // [count, additive_codebook_size]
};

// Chooses the code of one codebook for every vector that is not settled: the codeword that minimizes its
// unary entry plus the pair entries with the vector's other codes. Ties go to the lower number.
struct ConditionalModesArgs {
  const std::int16_t* own = nullptr;  // [count, additive_codebook_size]
  std::uint8_t* codes = nullptr;      // [count, stride]
  std::size_t stride = 0;
  std::size_t count = 0;
  std::size_t code = 0;  // index of the codebook
  // The other codebooks, and a table [additive_codebook_size of the other, additive_codebook_size of this]
  // for each.
  const std::size_t* others = nullptr;
  const std::int16_t* const* tables = nullptr;
  std::size_t other_count = 0;
  // [count] bit i: code i was chosen after the last change of another code, so choosing it again changes
  // nothing.
  std::uint32_t* settled = nullptr;
};

// Squared distances of vectors to their reconstructions.
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
  // Returns the number of vectors that were not settled.
  std::size_t (*conditional_modes)(const ConditionalModesArgs&) noexcept;
  void (*costs)(const AdditiveCostsArgs&) noexcept;
};
const AdditiveKernels& additive_kernels(InstructionSet set);

}  // namespace nearwise::cpu
