// Detects that a vector file has changed since its plan was made.
#pragma once

#include <cstdint>
#include <filesystem>

namespace nearwise::plan {

// Covers the length and 1024 evenly spaced pieces of 4 KiB: reading a whole file would take too long.
std::uint64_t input_checksum(const std::filesystem::path& path);

}  // namespace nearwise::plan
