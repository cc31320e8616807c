// Members of clusters and centroids of sums, computed the same way by every backend so that the bits are
// equal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/distance.h"
#include "nearwise/types.h"

namespace nearwise {

// Members of a cluster are summed in pieces of this many; the sums of pieces are added in order.
inline constexpr std::size_t cluster_piece_rows = 4096;

// Row numbers grouped by cluster, ascending within a cluster, and the end offset of each cluster.
inline void sort_by_cluster(std::span<const std::uint32_t> nearest, std::span<std::uint32_t> members,
                            std::span<std::uint64_t> ends) {
  std::ranges::fill(ends, std::uint64_t{0});
  // Begin offsets first; filling a cluster moves its offset to the end.
  for (const std::uint32_t cluster : nearest)
    if (cluster + 1 < ends.size()) ++ends[cluster + 1];
  for (std::size_t c = 1; c < ends.size(); ++c) ends[c] += ends[c - 1];
  for (std::size_t row = 0; row < nearest.size(); ++row)
    members[ends[nearest[row]]++] = static_cast<std::uint32_t>(row);
}

// The centroid of a cluster from the sum of its members: the mean, or for spherical metrics the normalised
// sum. A cluster without members, or whose sum is zero and cannot be normalised, keeps its centroid.
inline void centroid_from_sum(std::span<const double> sum, std::uint64_t size, Metric metric,
                              std::span<const float> before, std::span<float> centroid) {
  double divisor = static_cast<double>(size);
  if (metric != Metric::sqeuclidean) {
    double lanes[distance_lanes] = {};
    for (std::size_t i = 0; i < sum.size(); ++i) lanes[i % distance_lanes] += sum[i] * sum[i];
    divisor = std::sqrt(sum_of_lanes(lanes));
  }
  if (size == 0 || divisor == 0) {
    std::ranges::copy(before, centroid.begin());
    return;
  }
  for (std::size_t i = 0; i < sum.size(); ++i) centroid[i] = static_cast<float>(sum[i] / divisor);
}

}  // namespace nearwise
