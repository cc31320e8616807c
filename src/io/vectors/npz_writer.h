// Writes an .npz: a zip of .npy files, as numpy.savez makes it, stored and not compressed.
//
// Every entry has 64-bit sizes, so that there is one form for small and large arrays (numpy does the same).
// No times: the same arrays give the same bytes. The file appears in commit(), complete
// (io/files/atomic_file.h). One thread at a time. https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/atomic_file.h"

namespace nearwise {

class NpzWriter {
 public:
  // Throws Error(cannot_create).
  explicit NpzWriter(const std::filesystem::path& path) : file_(path) {}

  // Ends the array before it. `descr`: NumPy's name of the element type ("<f4"). An empty shape is a single
  // value.
  void begin_array(std::string_view name, std::string_view descr, const std::vector<std::uint64_t>& shape);
  // The next elements of the array that was begun, in C order; together they fill its shape.
  void append(std::span<const std::byte> elements);
  void commit();

 private:
  struct Entry {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // of the .npy, header included
    std::uint32_t checksum = 0;
  };
  void end_array();

  AtomicFile file_;
  std::vector<Entry> entries_;
  std::uint64_t expected_bytes_ = 0;  // of the array that was begun
};

// CRC-32 as zip has it (reflected polynomial 0xEDB88320): of bytes that follow those with checksum `before`.
std::uint32_t zip_checksum(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace nearwise
