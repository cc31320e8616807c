// Files of vectors and of ids, chosen by suffix.
//
//   .npy                  NumPy, C order, little-endian, 2-D: f4 f2 u1 i1 (vectors), i4 i8 (ids);
//                         two opaque bytes (V2, which is how bfloat16 is saved) are bf16
//   .fbin .u8bin .i8bin   big-ann-benchmarks: u32 rows, u32 dim, then the rows
//   .f16bin .bf16bin      the same with f16 and bf16
//   .ibin                 the same with i32 ids
//   .fvecs .bvecs .ivecs  TEXMEX: every row is preceded by its i32 dim (a file of 0 rows has dim 0)
//   .bin                  big-ann ground truth: u32 rows, u32 k, i32 ids, f32 distances
//   .nw                   the container of docs/format.md (saved results)
//
// Reading maps the file: nothing is copied, files may be larger than memory, and headers are checked against
// the file's length before they are used. Rows have the file's layout: any alignment, and in .*vecs a stride
// of 4 + dim * size bytes. Writing goes to a temporary name in the same folder, is synced, and takes the
// final name only when complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// A mapped file of vectors. Movable; rows() is valid while the object lives. Const methods may run at once.
// The file must not be truncated while it is mapped: replace files by renaming.
class VectorFile {
 public:
  // Throws Error(not_found | io | corrupt | invalid_argument for an unknown suffix or a sound file of
  // something else). In .*vecs the dim of every row is compared with the first; beyond 1 000 000 rows that of
  // the first, the last and 1024 rows in between (VectorReader compares all of them).
  static VectorFile open(const std::filesystem::path& path);
  VectorFile(VectorFile&&) noexcept;
  VectorFile& operator=(VectorFile&&) noexcept;
  ~VectorFile();

  RowsView rows() const;
  const std::filesystem::path& path() const;

 private:
  class Mapping;
  explicit VectorFile(std::unique_ptr<Mapping> mapping);
  std::unique_ptr<Mapping> mapping_;
};

// Reads a file of vectors front to back in chunks of at most max_bytes (at least one row), without mapping
// it: for work under a memory limit. The chunk returned is valid until the next call.
class VectorReader {
 public:
  VectorReader(const std::filesystem::path& path, std::size_t max_bytes);
  VectorReader(VectorReader&&) noexcept;
  VectorReader& operator=(VectorReader&&) noexcept;
  ~VectorReader();

  ElementType type() const;
  std::size_t rows() const;
  std::size_t dim() const;
  // The next rows; an empty view at the end.
  RowsView next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes vectors front to back in the format of the suffix. Without commit() no file appears.
class VectorWriter {
 public:
  // The suffix must be able to hold the type: .fbin f32, .u8bin u8, .npy any, ... dim is at least 1.
  VectorWriter(const std::filesystem::path& path, ElementType type, std::size_t dim);
  VectorWriter(VectorWriter&&) noexcept;
  VectorWriter& operator=(VectorWriter&&) noexcept;
  ~VectorWriter();

  // After an Error(io), a full disk say, the output is gone: start over.
  void append(RowsView rows);
  // Completes header, syncs, renames, syncs the folder.
  void commit();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A ground truth or result: ids, and distances where the format has them (otherwise a matrix of 0 x 0).
// Reads .ivecs, .ibin, .npy (ids), .bin (big-ann ground truth) and .nw (checksums verified).
Neighbors read_neighbors(const std::filesystem::path& path);

// Writes ids as .ivecs, .ibin (32 bits: an id that does not fit is an error) or .npy (i64); both ids and
// distances as .bin (32-bit ids). For .nw see storage.h, which also keeps metric and provenance.
void write_neighbors(const std::filesystem::path& path, const Neighbors& neighbors);

}  // namespace nearwise
