// A file in memory with a path, for readers that open their input by name.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace nearwise::fuzz {

class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("nearwise_fuzz", MFD_CLOEXEC)) {
    if (file_ == -1) std::abort();
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void set(const std::uint8_t* data, std::size_t size) const {
    if (ftruncate(file_, 0) != 0 || pwrite(file_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace nearwise::fuzz
