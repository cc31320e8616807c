// Product codes as warps read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/gpu.h"

namespace nearwise::gpu {

// Rows whose codes are interleaved: word w of row r lies at (r / 32 * words + w) * 32 + r % 32, so that a warp, a row
// per lane, reads 128 bytes one after another.
inline constexpr std::uint32_t interleaved_rows = 32;

// Codes of a word of 32 bits: the code of part p is part p % parts_per_word of word p / parts_per_word.
template <unsigned bits>
inline constexpr std::uint32_t parts_per_word = 32 / bits;

template <unsigned bits>
__device__ __forceinline__ std::uint32_t code_in(std::uint32_t word, std::uint32_t place) {
  return word >> (place * bits) & ((1U << bits) - 1);
}

__device__ __forceinline__ std::size_t interleaved_place(std::size_t row, std::uint32_t words,
                                                         std::uint32_t word) {
  return (row / interleaved_rows * words + word) * interleaved_rows + row % interleaved_rows;
}

}  // namespace nearwise::gpu
