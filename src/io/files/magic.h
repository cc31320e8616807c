// The first bytes of files that say what they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace nearwise {

inline constexpr std::array<unsigned char, 8> container_magic = {0x89, 'N', 'W', 'S', '\r', '\n', 0x1A, '\n'};
inline constexpr std::array<unsigned char, 6> npy_magic = {0x93, 'N', 'U', 'M', 'P', 'Y'};

inline bool begins_with(std::span<const std::byte> bytes, std::span<const unsigned char> magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](unsigned char expected, std::byte byte) { return std::byte{expected} == byte; });
}

}  // namespace nearwise
