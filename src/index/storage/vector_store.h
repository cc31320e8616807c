// How an inverted file of codes keeps the vectors themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codes/kept_vectors.h"
#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"

namespace nearwise::index {

struct VectorStore {
  VectorStorage storage = VectorStorage::none;
  ElementType type = ElementType::f32;  // of vectors as they are read
  std::size_t dim = 0;
  std::vector<float> offsets = {};  // u8: [dim]
  float step = 0;                   // u8

  KeptVectors view() const;
  std::size_t bytes() const { return bytes(storage, type, dim); }
  static std::size_t bytes(VectorStorage storage, ElementType type, std::size_t dim);
  // Of vectors of this type as they are read.
  static ElementType read_type(VectorStorage storage, ElementType type);

  // Throws Error(invalid_argument) for vectors that cannot be kept: of another type, or beyond f16.
  void check(const char* operation, const Context& context, const RowsView& rows) const;
  // The vector as it is kept: in place, or written to `scratch` [bytes()].
  const std::byte* encode(const RowsView& rows, std::size_t row, std::byte* scratch) const;

  friend bool operator==(const VectorStore&, const VectorStore&) = default;
};

// Offsets and step of u8 are the range of these vectors.
VectorStore make_vector_store(const Context& context, const RowsView& rows, VectorStorage storage);

}  // namespace nearwise::index
