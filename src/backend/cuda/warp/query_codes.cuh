// Queries in the layout that code distances read (code_distance.cuh).
//
// Eight threads compare a row: a load of each takes 16 bytes, of all 128. Elements of a query are 16-bit
// numbers, shifted to be positive, in pieces of eight; the pieces of one load of the eight threads are
// interleaved, so that a read of shared memory has no bank conflicts. With 4-bit codes, a load has 32 codes:
// those in the lower halves of its bytes are before those in the upper halves.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu {

inline constexpr std::uint32_t load_bytes = 16;
inline constexpr std::uint32_t row_threads = 8;
inline constexpr std::uint32_t piece_codes = 8;

// A code c counts as scale * c; elements of queries are at least -shift.
struct ByteCodes {
  static constexpr std::uint32_t scale = 1;
  static constexpr std::uint32_t shift = 255;
  static constexpr std::uint32_t pieces = 2;  // of a load
};
struct NibbleCodes {
  static constexpr std::uint32_t scale = 16;
  static constexpr std::uint32_t shift = 240;
  static constexpr std::uint32_t pieces = 4;
};

// 16-bit elements of a query for rows of this many bytes, a multiple of 16.
template <class Codes>
constexpr std::size_t query_size(std::size_t row_bytes) {
  constexpr std::size_t stride = std::size_t{load_bytes} * row_threads;
  return (row_bytes + stride - 1) / stride * row_threads * Codes::pieces * piece_codes;
}

template <class Codes>
constexpr std::size_t place_of(std::size_t load, std::size_t piece, std::size_t element) {
  return ((load / row_threads * Codes::pieces + piece) * row_threads + load % row_threads) * piece_codes +
         element;
}

constexpr std::size_t byte_place(std::size_t code) {
  return place_of<ByteCodes>(code / 16, code % 16 / piece_codes, code % piece_codes);
}

// 16-bit word j of a block of 64 bytes holds the codes j, j + 32, j + 64 and j + 96.
constexpr std::size_t nibble_place(std::size_t code) {
  const std::size_t word = code / 128 * 32 + code % 32;
  const std::size_t field = code % 128 / 32;
  const std::size_t in_load = word % 8 / 2;  // 32-bit word
  return place_of<NibbleCodes>(word / 8, field % 2 * 2 + in_load / 2,
                               in_load % 2 * 4 + word % 2 * 2 + field / 2);
}

}  // namespace nearwise::gpu
