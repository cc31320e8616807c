// The bytes of docs/format.md: header and section entries, to and from memory, with every structural check.
//
// Pure functions over bytes: no files, no hidden state. Reader, writer, tests and fuzz targets share them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/magic.h"
#include "nearwise/types.h"

namespace nearwise {

namespace container {

inline constexpr std::array<unsigned char, 8> magic = container_magic;
inline constexpr std::uint16_t version_major = 1;
inline constexpr std::uint16_t version_minor = 5;
inline constexpr std::size_t header_bytes = 128;
inline constexpr std::size_t header_checksum_offset = 120;
inline constexpr std::size_t entry_bytes = 64;
inline constexpr std::size_t name_bytes = 32;
inline constexpr std::uint64_t alignment = 4096;
inline constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20;
inline constexpr std::uint32_t most_sections = 65535;
inline constexpr std::uint64_t most_columns = 0xFFFFFFFF;
inline constexpr std::uint16_t most_element_bytes = 64;
inline constexpr std::uint32_t flag_required = 1;

enum class Element : std::uint16_t { bytes, json, u8, i8, u16, u32, u64, i32, i64, f16, bf16, f32, f64 };
inline constexpr std::uint16_t element_count = 13;

std::uint16_t element_bytes(Element element);
std::string_view name(Element element);

template <typename T>
struct ElementOf;
template <>
struct ElementOf<std::byte> : std::integral_constant<Element, Element::bytes> {};
template <>
struct ElementOf<std::uint8_t> : std::integral_constant<Element, Element::u8> {};
template <>
struct ElementOf<std::int8_t> : std::integral_constant<Element, Element::i8> {};
template <>
struct ElementOf<std::uint16_t> : std::integral_constant<Element, Element::u16> {};
template <>
struct ElementOf<std::uint32_t> : std::integral_constant<Element, Element::u32> {};
template <>
struct ElementOf<std::uint64_t> : std::integral_constant<Element, Element::u64> {};
template <>
struct ElementOf<std::int32_t> : std::integral_constant<Element, Element::i32> {};
template <>
struct ElementOf<std::int64_t> : std::integral_constant<Element, Element::i64> {};
template <>
struct ElementOf<Float16> : std::integral_constant<Element, Element::f16> {};
template <>
struct ElementOf<BFloat16> : std::integral_constant<Element, Element::bf16> {};
template <>
struct ElementOf<float> : std::integral_constant<Element, Element::f32> {};
template <>
struct ElementOf<double> : std::integral_constant<Element, Element::f64> {};

struct Release {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint16_t patch = 0;
};

struct Header {
  std::uint16_t version_major = container::version_major;
  std::uint16_t version_minor = 0;  // the first that describes the file
  Release needs = {0, 1, 0};        // the first release that reads format 1.0
  std::string kind;
  std::uint32_t section_count = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t table_offset = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t table_checksum = 0;
};

struct Section {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t rows = 0;
  std::uint64_t columns = 1;
  Element element = Element::bytes;
  std::uint16_t element_bytes = 1;
  bool required = true;
  std::uint64_t bytes = 0;        // rows * columns * element_bytes
  std::uint64_t blocks = 0;       // checksummed blocks
  std::uint64_t first_block = 0;  // its place among the blocks of the file
  std::uint64_t padded_end = 0;   // where the zero bytes behind the section end
};

// A name of a section or kind: 1 to 31 characters of a-z 0-9 _, a letter first.
bool well_formed_name(std::string_view name);

// XXH3-64, seed 0.
std::uint64_t checksum(std::span<const std::byte> bytes);

// Fills in the checksum of the header.
std::array<std::byte, header_bytes> encode(const Header& header);
std::array<std::byte, entry_bytes> encode(const Section& section);

// Checks 1 to 5 of docs/format.md. `bytes` is the whole file. `source` begins every message.
Header decode_header(std::span<const std::byte> bytes, const std::string& source);

// Checks 6 and 7: the table's checksum and every entry.
std::vector<Section> decode_table(std::span<const std::byte> bytes, const Header& header,
                                  const std::string& source);

// "nearwise >= 0.3.0"
std::string needed_release(const Header& header);

}  // namespace container

}  // namespace nearwise
