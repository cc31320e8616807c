// What the codes of an inverted file stand for: vectors as they are, product codes or additive codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

class CodewordTables;

struct ListView {
  const std::byte* codes = nullptr;  // [rows, code_bytes]
  const Id* ids = nullptr;           // [rows]
  std::size_t rows = 0;
};

// A code decodes to the vector itself, or to the sum of its list's centroid and one codeword for each part (a
// product code), or of the centroid and one codeword as long as the row of every codebook (an additive code).
struct ListCodec {
  std::size_t dim = 0;
  ElementType type = ElementType::f32;  // of the encoded vectors
  std::size_t code_bytes = 0;
  // Of product codes; else empty.
  std::span<const std::size_t> part_begins;  // [parts + 1] dimensions
  std::span<const float> codebooks;          // of all parts in turn, [2^bits, dimensions of the part]
  unsigned bits = 8;                         // or 4: part 2i in the low half of byte i
  MatrixView<const float> centroids;         // [lists, dim]
  const CodewordTables* tables = nullptr;    // made of the above before; null: a search makes its own
  // Of additive codes, a byte for each codebook; else empty.
  std::span<const float> additive_codewords = {};  // [code_bytes, 256, dim]

  bool is_product() const { return !part_begins.empty(); }
  bool is_additive() const { return !additive_codewords.empty(); }
  bool holds_rows() const { return !is_product() && !is_additive(); }

  // Of codes. A part of an additive code is one codebook, whose codewords have all elements of a row.
  std::size_t parts() const { return is_additive() ? code_bytes : part_begins.size() - 1; }
  std::size_t part_begin(std::size_t part) const { return is_additive() ? 0 : part_begins[part]; }
  std::size_t part_size(std::size_t part) const {
    return is_additive() ? dim : part_begins[part + 1] - part_begins[part];
  }
  // Where its codewords, [2^bits, part_size], begin among all.
  std::size_t codewords_begin(std::size_t part) const {
    return (is_additive() ? part * dim : part_begins[part]) << bits;
  }
  std::span<const float> all_codewords() const { return is_additive() ? additive_codewords : codebooks; }
  std::span<const float> codewords_of(std::size_t part) const {
    return all_codewords().subspan(codewords_begin(part), part_size(part) << bits);
  }
};

// The codeword of a part that a code names.
template <unsigned bits>
std::size_t codeword_of(const std::byte* code, std::size_t part) {
  if constexpr (bits == 8) return static_cast<std::size_t>(code[part]);
  const auto both = static_cast<std::size_t>(code[part / 2]);
  return part % 2 == 0 ? both & 15U : both >> 4U;
}
inline std::size_t codeword_of(const ListCodec& codec, const std::byte* code, std::size_t part) {
  return codec.bits == 8 ? codeword_of<8>(code, part) : codeword_of<4>(code, part);
}

// Writes what the codes of rows [first, first + count) of a list stand for, as codec.type, one after the
// other.
void decode_rows(const ListCodec& codec, const ListView& view, std::size_t list, std::size_t first,
                 std::size_t count, std::byte* out);

}  // namespace nearwise
