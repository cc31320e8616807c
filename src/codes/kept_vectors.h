// The vectors that an inverted file of codes keeps beside them, as plain data that every backend reads.
#pragma once

#include <cstddef>
#include <span>

#include "nearwise/types.h"

namespace nearwise {

// Elements as they were added, or rounded to f16, or to 8 bits: offset + step * byte.
struct KeptVectors {
  std::size_t bytes = 0;                // per vector; 0: none
  ElementType type = ElementType::f32;  // of a vector as it is read
  std::size_t dim = 0;
  std::span<const float> offsets = {};  // [dim] for 8 bits; else empty
  float step = 0;                       // for 8 bits

  bool any() const { return bytes != 0; }
  bool is_scaled() const { return !offsets.empty(); }
  std::size_t read_bytes() const { return dim * element_size(type); }

  // Where the vector can be read: in place, or decoded to `scratch` [read_bytes()].
  const std::byte* read(const std::byte* kept, std::byte* scratch) const;
};

}  // namespace nearwise
