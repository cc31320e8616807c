// Interleaved codes of inverted lists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/gpu.h"

namespace nearwise::gpu {

// Rows per interleaved group: word w of row r is at (r / 32 * words + w) * 32 + r % 32, so that a warp with
// one row per lane reads 128 contiguous bytes.
inline constexpr std::uint32_t interleaved_rows = 32;

// Codes per 32-bit word: code p is field p % parts_per_word of word p / parts_per_word.
template <unsigned bits>
inline constexpr std::uint32_t parts_per_word = 32 / bits;

template <unsigned bits>
__device__ __forceinline__ std::uint32_t code_in(std::uint32_t word, std::uint32_t field) {
  return word >> (field * bits) & ((1U << bits) - 1);
}

__device__ __forceinline__ std::size_t interleaved_index(std::size_t row, std::uint32_t words_per_code,
                                                         std::uint32_t word) {
  return (row / interleaved_rows * words_per_code + word) * interleaved_rows + row % interleaved_rows;
}

}  // namespace nearwise::gpu
