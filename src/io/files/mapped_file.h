// A file in memory, read-only, without copying it: pages are read when touched.
//
// The mapping stays as it was while the file is replaced by renaming, which is how nearwise writes. Reading
// the part that a file has lost because someone truncated it in place is Error(corrupt) in operations
// (core/lost_pages.h). Bytes that someone changes in place are data like any other, and so are the zeros
// behind the end of a truncated file in its last page.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "core/lost_pages.h"

namespace nearwise {

class MappedFile {
 public:
  MappedFile() = default;
  // Throws Error(not_found | invalid_argument for what is no regular file | io | out_of_memory).
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), range_(std::move(other.range_)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(range_, other.range_);
    return *this;
  }
  ~MappedFile();

  // Page-aligned; empty for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  MappedRange range_;
};

}  // namespace nearwise
