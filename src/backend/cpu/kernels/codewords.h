// Codewords of one part of a product quantizer: the nearest to many short rows, and the distances from one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

inline constexpr std::size_t most_codewords = 256;

struct CodewordsView {
  const float* words = nullptr;    // [count, dim]
  const float* columns = nullptr;  // [dim, count] the same, transposed
  std::size_t dim = 0;
  std::size_t count =
      0;  // a multiple of 16, at most 256; columns of infinities stand for codewords that are not there
  // Bit i of the words: whether codeword i is there and the first of its value. Others are never the nearest.
  const std::uint64_t* distinct = nullptr;
};

struct NearestCodewordsArgs {
  CodewordsView codewords;
  const float* rows = nullptr;  // finite
  std::size_t stride = 0;       // elements from one row to the next
  std::size_t count = 0;
  std::uint8_t* nearest = nullptr;  // [count] out
  float* distances = nullptr;       // [count] out, as reported; null: not wanted
};

struct CodewordTableArgs {
  CodewordsView codewords;
  const float* query = nullptr;  // [dim] finite
  float* table = nullptr;        // [count of codewords] out
};

struct CodewordKernels {
  // The least reported squared distance, the lower number in a tie.
  void (*nearest)(const NearestCodewordsArgs&) noexcept;
  // As reported: sums in f64, rounded once.
  void (*differences)(const CodewordTableArgs&) noexcept;
  void (*products)(const CodewordTableArgs&) noexcept;
};
const CodewordKernels& codeword_kernels(InstructionSet set);

}  // namespace nearwise::cpu
