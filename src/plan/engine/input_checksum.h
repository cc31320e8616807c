// Whether a file of vectors is still the one that a plan was made of.
#pragma once

#include <cstdint>
#include <filesystem>

namespace nearwise::plan {

// Of the length and some of the content: a file as large as these takes long to read.
std::uint64_t input_checksum(const std::filesystem::path& path);

}  // namespace nearwise::plan
