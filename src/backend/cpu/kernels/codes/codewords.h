// Kernels for the codewords of one part of a product quantizer: nearest codewords of vectors, and lookup
// tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

inline constexpr std::size_t max_codewords = 256;

struct CodewordsView {
  const float* values = nullptr;   // [count, dim]
  const float* columns = nullptr;  // [dim, count] the same, transposed
  std::size_t dim = 0;
  std::size_t count = 0;  // a multiple of 16, at most 256; columns are padded with infinity
  // Bit i: whether codeword i exists and is the first of its value. Others are never the nearest.
  const std::uint64_t* distinct = nullptr;
};

struct NearestCodewordsArgs {
  CodewordsView codewords;
  const float* rows = nullptr;  // finite
  std::size_t stride = 0;       // in elements
  std::size_t count = 0;
  std::uint8_t* nearest = nullptr;  // [count] out
  float* distances = nullptr;       // [count] out, reported distances; may be null
};

struct CodewordTableArgs {
  CodewordsView codewords;
  const float* query = nullptr;  // [dim] finite
  float* table = nullptr;        // [codewords.count] out
};

struct CodewordKernels {
  // Minimum reported squared distance; ties go to the lower number.
  void (*nearest)(const NearestCodewordsArgs&) noexcept;
  // As in core/distance.h: sums in f64, rounded once.
  void (*differences)(const CodewordTableArgs&) noexcept;
  void (*products)(const CodewordTableArgs&) noexcept;
};
const CodewordKernels& codeword_kernels(InstructionSet set);

}  // namespace nearwise::cpu
