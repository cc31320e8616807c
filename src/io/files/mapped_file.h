// A file in memory, read-only, without copying it: pages are read when touched.
//
// The mapping stays as it was while the file is replaced by renaming, which is how nearwise writes. A file
// that somebody shortens in place while it is mapped kills the process that touches the lost part (SIGBUS).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace nearwise {

class MappedFile {
 public:
  MappedFile() = default;
  // Throws Error(not_found | invalid_argument for what is no regular file | io | out_of_memory).
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  // Page-aligned; empty for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace nearwise
