// A file of vectors that an index refers to: entries hold the numbers of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "nearwise/types.h"
#include "nearwise/vector_file.h"

namespace nearwise::ivf {

struct LinkedFile {
  std::filesystem::path path = {};  // absolute
  std::uint64_t bytes = 0;
  // Of the bytes from the first to the last row: XXH3-64 of the XXH3-64 of each MiB.
  std::uint64_t checksum = 0;
  std::shared_ptr<const VectorFile> mapped = {};

  // Files of the same content; they may lie elsewhere.
  friend bool operator==(const LinkedFile& left, const LinkedFile& right) {
    return left.bytes == right.bytes && left.checksum == right.checksum;
  }
};

// Maps the file and computes its checksum.
LinkedFile link_file(const std::filesystem::path& path);

// The path as an index file records it: a name, if both are in one folder, so that the folder can be moved.
std::string recorded_path(const std::filesystem::path& path, const std::filesystem::path& index_path);
// The inverse.
std::filesystem::path linked_path(const std::string& recorded, const std::filesystem::path& index_path);

// Maps the file where it is recorded, or else that of its name in the folder of the index. recorded: without
// the mapping. Throws Error(not_found), or Error(corrupt) for another content, naming `source`.
LinkedFile open_linked_file(const LinkedFile& recorded, ElementType type, std::size_t dim,
                            const std::filesystem::path& index_path, const std::string& source);

// Throws Error(corrupt) unless all row numbers [count] are below `rows`. Returns one above the largest; 0
// without any.
std::uint64_t check_file_rows(const std::byte* numbers, std::size_t count, std::size_t rows,
                              const std::string& source);

}  // namespace nearwise::ivf
