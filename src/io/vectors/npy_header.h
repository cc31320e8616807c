// The header of a NumPy .npy file (format versions 1.0 to 3.0).
//
// Reads the dictionary as data, with a grammar of its own: nothing is evaluated, pickled objects are refused.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nearwise {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::size_t data_offset = 0;
};

// The longest header we read, magic included. NumPy's own are 128 bytes for plain arrays.
inline constexpr std::size_t most_npy_header_bytes = std::size_t{64} << 10;

// `head`: the file's first most_npy_header_bytes, or all of a shorter file. `source` begins every message.
// Throws Error(corrupt), or Error(invalid_argument) for what is well-formed but no plain array.
NpyHeader parse_npy_header(std::span<const std::byte> head, const std::string& source);

// A header of version 1.0 whose length does not depend on the number of rows, so that it can be written first
// and filled in last.
inline constexpr std::size_t written_npy_header_bytes = 128;
std::string make_npy_header(std::string_view descr, std::uint64_t rows, std::uint64_t columns);
// Of any shape; an empty one is a single value.
std::string make_npy_header(std::string_view descr, const std::vector<std::uint64_t>& shape);

}  // namespace nearwise
