// The distance between two rows of 8-bit codes, for few pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nearwise::graph_index {

inline std::uint64_t code_distance(std::span<const std::uint8_t> left, std::span<const std::uint8_t> right) {
  std::uint32_t sum = 0;  // below 2^31 (codes/scalar_codec.h)
  for (std::size_t i = 0; i < left.size(); ++i) {
    const int difference = int{left[i]} - int{right[i]};
    sum += static_cast<std::uint32_t>(difference * difference);
  }
  return sum;
}

}  // namespace nearwise::graph_index
