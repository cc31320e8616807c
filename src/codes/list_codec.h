// How the vectors of an inverted file are stored, as plain data that every backend reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

class CodewordTables;

enum class ListEncoding : std::uint8_t {
  flat,  // the vector itself
  pq,    // centroid + one codeword per part of the vector
  lsq,   // centroid + one codeword per codebook, each as long as the vector
};

struct ListView {
  const std::byte* codes = nullptr;  // [rows, code_bytes]
  const Id* ids = nullptr;           // [rows]
  std::size_t rows = 0;
  const std::byte* vectors = nullptr;  // [rows, KeptVectors::bytes]; null: none are kept
  // Of entries that were copied together: entry i has vector vector_rows[i]. Null: vector i.
  const std::uint32_t* vector_rows = nullptr;

  std::size_t vector_row(std::size_t row) const { return vector_rows == nullptr ? row : vector_rows[row]; }
};

struct ListCodec {
  ListEncoding encoding = ListEncoding::flat;
  std::size_t dim = 0;
  ElementType type = ElementType::f32;  // of decoded vectors
  std::size_t code_bytes = 0;
  std::span<const std::size_t> part_begins = {};  // pq: [parts + 1] dimensions
  // pq: part after part, each [2^bits, dimensions of the part]. lsq: [code_bytes, 256, dim].
  std::span<const float> codewords = {};
  unsigned bits = 8;                       // per part. 4: part 2i in the low half of byte i
  MatrixView<const float> centroids = {};  // [lists, dim]
  const CodewordTables* tables = nullptr;  // precomputed; null: each search computes its own

  bool is_flat() const { return encoding == ListEncoding::flat; }

  // Of codes. A part of an additive code is one codebook, whose codewords have all dimensions.
  std::size_t parts() const { return is_lsq() ? code_bytes : part_begins.size() - 1; }
  std::size_t part_begin(std::size_t part) const { return is_lsq() ? 0 : part_begins[part]; }
  std::size_t part_size(std::size_t part) const {
    return is_lsq() ? dim : part_begins[part + 1] - part_begins[part];
  }
  // Offset of the part's codewords, [2^bits, part_size].
  std::size_t codewords_begin(std::size_t part) const {
    return (is_lsq() ? part * dim : part_begins[part]) << bits;
  }
  std::span<const float> codewords_of(std::size_t part) const {
    return codewords.subspan(codewords_begin(part), part_size(part) << bits);
  }

 private:
  bool is_lsq() const { return encoding == ListEncoding::lsq; }
};

// Index of the codeword that a code selects for a part.
template <unsigned bits>
std::size_t codeword_of(const std::byte* code, std::size_t part) {
  if constexpr (bits == 8) return static_cast<std::size_t>(code[part]);
  const auto both = static_cast<std::size_t>(code[part / 2]);
  return part % 2 == 0 ? both & 15U : both >> 4U;
}
inline std::size_t codeword_of(const ListCodec& codec, const std::byte* code, std::size_t part) {
  return codec.bits == 8 ? codeword_of<8>(code, part) : codeword_of<4>(code, part);
}

// Decodes the vectors [first, first + count) of a list into consecutive rows of codec.type.
void decode_rows(const ListCodec& codec, const ListView& view, std::size_t list, std::size_t first,
                 std::size_t count, std::byte* out);

}  // namespace nearwise
