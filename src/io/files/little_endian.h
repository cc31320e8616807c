// Numbers at any place in a file. Files are little-endian and mapped arrays are used as they lie, so this
// library is for little-endian machines.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace nearwise {

static_assert(std::endian::native == std::endian::little, "files are used in place and are little-endian");

template <typename T>
T load(const std::byte* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* to, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace nearwise
