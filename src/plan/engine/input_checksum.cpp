#include "plan/engine/input_checksum.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "io/files/input_file.h"

namespace nearwise::plan {

std::uint64_t input_checksum(const std::filesystem::path& path) {
  constexpr std::size_t pieces = 1024;
  constexpr std::uint64_t piece_bytes = 4096;
  const InputFile file(path);
  std::vector<std::byte> bytes(piece_bytes);
  std::uint64_t checksum = file.size();
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::uint64_t last = file.size() - std::min(file.size(), piece_bytes);
    const std::uint64_t offset = last * i / (pieces - 1);
    const std::span<std::byte> piece = std::span(bytes).first(std::min(file.size() - offset, piece_bytes));
    file.read(offset, piece);
    checksum = XXH3_64bits_withSeed(piece.data(), piece.size(), checksum);
  }
  return checksum;
}

}  // namespace nearwise::plan
