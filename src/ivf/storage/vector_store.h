// How an inverted file of codes keeps the vectors themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "codes/kept_vectors.h"
#include "core/memory.h"
#include "ivf/storage/linked_file.h"
#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"

namespace nearwise::ivf {

struct VectorStore {
  VectorStorage storage = VectorStorage::none;
  ElementType type = ElementType::f32;  // of vectors as they are read
  std::size_t dim = 0;
  std::vector<float> offsets = {};  // u8: [dim]
  float step = 0;                   // u8
  LinkedFile file = {};             // file

  // Throws Error(corrupt) if the linked file has lost pages.
  KeptVectors view() const;
  std::size_t bytes() const { return bytes(storage, type, dim); }
  static std::size_t bytes(VectorStorage storage, ElementType type, std::size_t dim);
  // Of vectors of this type as they are read.
  static ElementType read_type(VectorStorage storage, ElementType type);

  // Throws Error(invalid_argument) for vectors that cannot be kept: of another type, or beyond f16.
  void check(const char* operation, const Context& context, const RowsView& rows) const;
  // The rows of the linked file that these vectors are: those from `next_row` on, or those with the numbers
  // of their ids (none: not tried). Throws Error(invalid_argument) if they are neither.
  Buffer<std::uint32_t> rows_in_file(const char* operation, MemoryBudget& budget, const RowsView& rows,
                                     std::span<const Id> ids, std::uint64_t next_row) const;
  // The vector as it is kept: in place, or written to `scratch` [bytes()]. Not for `file`.
  const std::byte* encode(const RowsView& rows, std::size_t row, std::byte* scratch) const;

  friend bool operator==(const VectorStore&, const VectorStore&) = default;
};

// Offsets and step of u8 are the range of these vectors. path: for VectorStorage::file.
VectorStore make_vector_store(const Context& context, const RowsView& rows, VectorStorage storage,
                              const std::filesystem::path& path);

}  // namespace nearwise::ivf
