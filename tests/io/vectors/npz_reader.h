// Reads an .npz by the definition of zip with 64-bit sizes, for tests of what writes one.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/temporary_folder.h"
#include "io/vectors/npy_header.h"

namespace nearwise::testing_io {

struct NpzArray {
  NpyHeader header;
  std::vector<std::byte> elements;

  template <typename T>
  std::vector<T> as() const {
    std::vector<T> values(elements.size() / sizeof(T));
    std::memcpy(values.data(), elements.data(), values.size() * sizeof(T));
    return values;
  }
};

// Bit by bit, as CRC-32 is defined.
inline std::uint32_t slow_zip_checksum(std::span<const std::byte> bytes) {
  std::uint32_t value = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    value ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~value;
}

// By name. Fails the test where local headers, directory and checksums do not agree.
inline std::map<std::string, NpzArray> read_npz(const std::filesystem::path& path) {
  const std::vector<std::byte> file = read_all(path);
  const auto number = [&]<typename T>(std::size_t at, T value) {
    std::memcpy(&value, file.data() + at, sizeof(T));
    return value;
  };
  const auto u16 = [&](std::size_t at) { return number(at, std::uint16_t{}); };
  const auto u32 = [&](std::size_t at) { return number(at, std::uint32_t{}); };
  const auto u64 = [&](std::size_t at) { return number(at, std::uint64_t{}); };
  const auto text = [&](std::size_t at, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(file.data()) + at, size);
  };
  std::map<std::string, NpzArray> arrays;
  const std::size_t locator = file.size() - 22 - 20;
  EXPECT_EQ(text(file.size() - 22, 4), "PK\5\6");
  EXPECT_EQ(text(locator, 4), "PK\6\7");
  const std::size_t end = u64(locator + 8);
  EXPECT_EQ(text(end, 4), "PK\6\6");
  EXPECT_EQ(end + 56, locator);
  const std::uint64_t entries = u64(end + 32);
  std::size_t at = u64(end + 48);
  EXPECT_EQ(at + u64(end + 40), end);
  for (std::uint64_t i = 0; i < entries; ++i) {
    EXPECT_EQ(text(at, 4), "PK\1\2");
    const std::size_t name_size = u16(at + 28);
    const std::string name = text(at + 46, name_size);
    const std::size_t extra = at + 46 + name_size;
    EXPECT_EQ(u16(at + 30), 28);
    EXPECT_EQ(u16(extra), 1);
    const std::uint64_t bytes = u64(extra + 4);
    EXPECT_EQ(u64(extra + 12), bytes);
    const std::uint64_t local = u64(extra + 20);
    EXPECT_EQ(text(local, 4), "PK\3\4");
    EXPECT_EQ(u32(local + 14), u32(at + 16));
    EXPECT_EQ(text(local + 30, name_size), name);
    EXPECT_EQ(u64(local + 30 + name_size + 4), bytes);
    const std::size_t data = local + 30 + name_size + u16(local + 28);
    const std::span<const std::byte> content = std::span(file).subspan(data, bytes);
    EXPECT_EQ(slow_zip_checksum(content), u32(at + 16)) << name;
    NpzArray array;
    array.header = parse_npy_header(content, name);
    const auto elements = content.subspan(array.header.data_offset);
    array.elements.assign(elements.begin(), elements.end());
    arrays[name] = std::move(array);
    at = extra + 28;
  }
  EXPECT_EQ(at, end);
  return arrays;
}

}  // namespace nearwise::testing_io
