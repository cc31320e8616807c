// A file open for reading: its descriptor and its length. Refuses what is no regular file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace nearwise {

class InputFile {
 public:
  // Throws Error(not_found | invalid_argument for what is no regular file | io).
  explicit InputFile(const std::filesystem::path& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  int descriptor() const { return descriptor_; }
  std::uint64_t size() const { return size_; }

  // Fills `bytes` from `offset`; Error(io) if the file ends before (it was shortened since it was opened).
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace nearwise
