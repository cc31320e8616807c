// The vectors that an inverted file of codes also keeps, as plain data that every backend reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

// Elements as they were added, or rounded to f16, or to 8 bits: offset + step * byte. Or the number of a row
// of a file, u32.
struct KeptVectors {
  std::size_t bytes = 0;                // per vector; 0: none
  ElementType type = ElementType::f32;  // of a vector as it is read
  std::size_t dim = 0;
  std::span<const float> offsets = {};  // [dim] for 8 bits; else empty
  float step = 0;                       // for 8 bits
  RowsView file = {};                   // rows that numbers refer to; else none

  bool any() const { return bytes != 0; }
  bool is_scaled() const { return !offsets.empty(); }
  bool is_in_file() const { return file.rows() != 0; }
  std::size_t read_bytes() const { return dim * element_size(type); }

  const std::byte* row_of(const std::byte* kept) const {
    std::uint32_t row = 0;
    std::memcpy(&row, kept, sizeof(row));
    return file.row(row);
  }
  // Where the vector can be read: in place, or decoded to `scratch` [read_bytes()].
  const std::byte* read(const std::byte* kept, std::byte* scratch) const;
};

}  // namespace nearwise
