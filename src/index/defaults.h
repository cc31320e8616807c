// Default list count and code size.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace nearwise::index {

// k-means needs some rows per centroid to mean anything.
inline constexpr std::size_t min_rows_per_list = 39;

inline std::size_t default_lists(std::size_t rows) {
  const auto wanted = static_cast<std::size_t>(std::lround(4 * std::sqrt(static_cast<double>(rows))));
  return std::max<std::size_t>(1, std::min(wanted, rows / min_rows_per_list));
}

inline std::size_t default_code_bytes(std::size_t dim) {
  return std::min(dim, std::clamp<std::size_t>(dim / 8, 8, 64));
}

}  // namespace nearwise::index
