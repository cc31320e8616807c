// Files that someone truncates in place while they are mapped.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "io/files/file_calls.h"

namespace nearwise::testing_io {

// As a user's own tools do it; the mappings of the file stay.
inline void truncate_in_place(const std::filesystem::path& path, std::uint64_t bytes) {
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(bytes)), 0) << path;
}

// While it lives, every file is truncated right after it was mapped, before its first byte is read.
class TruncatingCalls {
 public:
  explicit TruncatingCalls(std::uint64_t kept_bytes) {
    kept() = kept_bytes;
    static const FileCalls calls = [] {
      FileCalls own = system_file_calls();
      own.mmap = [](int file, std::size_t bytes) {
        void* const data = system_file_calls().mmap(file, bytes);
        truncate_in_place("/proc/self/fd/" + std::to_string(file), kept());
        return data;
      };
      return own;
    }();
    replace_file_calls(&calls);
  }
  ~TruncatingCalls() { replace_file_calls(nullptr); }
  TruncatingCalls(const TruncatingCalls&) = delete;
  TruncatingCalls& operator=(const TruncatingCalls&) = delete;

 private:
  static std::uint64_t& kept() {
    static std::uint64_t bytes = 0;
    return bytes;
  }
};

}  // namespace nearwise::testing_io
