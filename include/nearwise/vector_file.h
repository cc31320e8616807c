// Files of vectors and ids. .npy and .nw are recognised by content, all other formats by suffix.
//
//   .npy                  NumPy, C order, little-endian, 2-D: f4 f2 u1 i1 (vectors), i4 i8 (ids);
//                         V2 (two opaque bytes, the saved form of bfloat16) is bf16
//   .fbin .u8bin .i8bin   big-ann-benchmarks: u32 rows, u32 dim, then the rows
//   .f16bin .bf16bin      the same with f16 and bf16
//   .ibin                 the same with i32 ids
//   .fvecs .bvecs .ivecs  TEXMEX: each row preceded by its i32 dim (a file of 0 rows has dim 0)
//   .bin                  big-ann ground truth: u32 rows, u32 k, i32 ids, f32 distances
//   .nw                   the container of docs/format.md (saved results)
//
// Files are memory-mapped, so they may be larger than memory; headers are checked against the file size.
// Vectors keep the file's layout: any alignment, and in .*vecs a stride of 4 + dim * size bytes. Writers
// write a temporary file in the same folder, sync it, and rename it once complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// A memory-mapped file of vectors; rows() is valid while the object lives. Threads may share it. Replace the
// file by renaming: operations on a file that is truncated while mapped throw Error(corrupt), and other code
// that reads the memory of rows() is killed (SIGBUS).
class VectorFile {
 public:
  // Throws Error: not_found, io, corrupt, or invalid_argument for an unknown suffix or a valid file that
  // holds no vectors. In .*vecs the dim of every row must equal the first row's; above 1,000,000 rows only
  // the last and 1024 rows in between are checked (VectorReader checks all).
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

// Reads a file of vectors in sequence, in chunks of at most max_bytes (at least one row), without mapping it:
// for work under a memory limit. A chunk is valid until the next call.
class VectorReader {
 public:
  VectorReader(const std::filesystem::path& path, std::size_t max_bytes);
  VectorReader(VectorReader&&) noexcept;
  VectorReader& operator=(VectorReader&&) noexcept;
  ~VectorReader();

  ElementType type() const;
  std::size_t rows() const;
  std::size_t dim() const;
  // The next chunk; an empty view at the end.
  RowsView next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes vectors in sequence. Without commit() no file appears.
class VectorWriter {
 public:
  // The format must support the type: .fbin f32, .u8bin u8, .npy any, ... dim must be at least 1.
  VectorWriter(const std::filesystem::path& path, ElementType type, std::size_t dim);
  VectorWriter(VectorWriter&&) noexcept;
  VectorWriter& operator=(VectorWriter&&) noexcept;
  ~VectorWriter();

  // After Error(io), such as a full disk, the output is lost: start over.
  void append(RowsView rows);
  // Completes the header, syncs, renames, and syncs the folder.
  void commit();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads a ground truth or search result: ids, and distances if the format has them (otherwise 0 x 0).
// Formats: .ivecs, .ibin, .npy (ids), .bin (big-ann ground truth) and .nw (checksums verified).
Neighbors read_neighbors(const std::filesystem::path& path);

// Reads a 1-D boolean .npy: one byte per element, nonzero for true.
std::vector<std::uint8_t> read_mask(const std::filesystem::path& path);

// Writes ids as .ivecs or .ibin (32-bit: an id that does not fit is an error) or .npy (i64), ids and
// distances as .bin (32-bit ids). For .nw, which also keeps metric and provenance, see storage.h.
void write_neighbors(const std::filesystem::path& path, const Neighbors& neighbors);

}  // namespace nearwise
