// Writes rows of vectors or ids in the layout of a suffix: .npy, .*bin or .*vecs.
//
// What VectorWriter and write_neighbors share. The file appears in commit(), complete
// (io/files/atomic_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "io/files/atomic_file.h"
#include "io/vectors/vector_layout.h"

namespace nearwise {

class RowOutput {
 public:
  // Throws Error(invalid_argument) if the suffix cannot hold such rows, Error(cannot_create).
  RowOutput(const std::filesystem::path& path, StoredType type, std::size_t dim);

  // One row's elements.
  void append(std::span<const std::byte> row);
  // `count` rows without gaps between them.
  void append_packed(std::span<const std::byte> rows, std::size_t count);
  void commit();

  StoredType type() const { return type_; }
  std::size_t dim() const { return dim_; }
  std::size_t row_bytes() const { return row_bytes_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  void count_rows(std::size_t count);

  VectorFormat format_;
  StoredType type_;
  std::size_t dim_;
  std::size_t row_bytes_;
  std::uint64_t rows_ = 0;
  AtomicFile file_;
};

}  // namespace nearwise
