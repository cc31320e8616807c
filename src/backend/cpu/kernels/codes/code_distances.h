// Squared differences between a query and scattered rows of 8-bit or 4-bit codes, in integers: the same
// numbers on every instruction set. And the filter of rows that a search has seen already.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/instruction_set.h"

namespace nearwise::cpu {

// Rows of codes are padded with zeros to a multiple of this many bytes.
inline constexpr std::size_t code_granule = 64;
// Elements that a function may write past the end of its output.
inline constexpr std::size_t code_overrun = 16;

// Codes and queries are such that sums stay below 2^31 (codes/scalar_codec.h).
struct CodeDistanceArgs {
  const std::int16_t* query = nullptr;  // one number per code, padded with zeros; aligned to 64 bytes
  const std::uint8_t* codes = nullptr;
  std::size_t row_bytes = 0;            // a multiple of code_granule
  const std::uint32_t* rows = nullptr;  // [count]
  std::size_t count = 0;
  std::int32_t* distances = nullptr;  // [count + code_overrun] out
};

struct UnseenArgs {
  const std::int32_t* list = nullptr;  // [degree] rows; negative: none
  std::size_t degree = 0;              // a multiple of 16
  std::uint32_t* seen = nullptr;       // a bit per row, in and out
  const std::uint8_t* codes = nullptr;
  std::size_t row_bytes = 0;
  std::uint32_t* rows = nullptr;  // [degree + code_overrun] out
};

struct CodeDistanceKernels {
  void (*bytes)(const CodeDistanceArgs&) noexcept;
  // A row is a sequence of 64-byte blocks of 128 codes: 16-bit word j holds the codes j, j + 32, j + 64 and
  // j + 96 of its block, the first in the lowest bits. A code c counts as 16 c.
  void (*nibbles)(const CodeDistanceArgs&) noexcept;
  // A row of byte codes as a query.
  void (*widen)(const std::uint8_t* row, std::size_t row_bytes, std::int16_t* query) noexcept;
  // Writes the rows of the list that have not been seen, marks them as seen, and prefetches their codes.
  std::size_t (*unseen)(const UnseenArgs&) noexcept;
};
const CodeDistanceKernels& code_distance_kernels(InstructionSet set);

}  // namespace nearwise::cpu
