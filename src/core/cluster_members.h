// Rows by cluster, and the cut of large clusters: what every backend must do alike for its sums to have the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace nearwise {

// Members of a cluster that are summed apart, before the sums are added in order.
inline constexpr std::size_t cluster_piece_rows = 4096;

// Row numbers by cluster, ascending in each, and where the members of each end.
inline void sort_by_cluster(std::span<const std::uint32_t> nearest, std::span<std::uint32_t> members,
                            std::span<std::uint64_t> ends) {
  std::ranges::fill(ends, std::uint64_t{0});
  // Where each cluster begins; filling its part moves that to its end.
  for (const std::uint32_t cluster : nearest)
    if (cluster + 1 < ends.size()) ++ends[cluster + 1];
  for (std::size_t c = 1; c < ends.size(); ++c) ends[c] += ends[c - 1];
  for (std::size_t row = 0; row < nearest.size(); ++row)
    members[ends[nearest[row]]++] = static_cast<std::uint32_t>(row);
}

}  // namespace nearwise
