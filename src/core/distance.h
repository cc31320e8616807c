// The one definition of a reported distance.
//
// A backend accumulates in f64, element i into lane i mod 8 with i increasing, every product rounded before
// it is added (no FMA), and combines the lanes by sum_of_lanes. What it reports is reported() of those sums.
// sqrt and division are correctly rounded everywhere, so the same sums give the same bits on every device.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "nearwise/types.h"

namespace nearwise {

inline constexpr std::size_t distance_lanes = 8;

constexpr double sum_of_lanes(const double* lane) noexcept {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// Distances that depend on differences alone: the origin may be moved.
constexpr bool is_euclidean(Metric metric) {
  return metric == Metric::sqeuclidean || metric == Metric::euclidean;
}

// sum: squared differences (sqeuclidean, euclidean) or products (inner_product, cosine).
// The norms are sums of squares, used by cosine only.
constexpr float reported(Metric metric, double sum, double query_norm, double row_norm) noexcept {
  switch (metric) {
    case Metric::euclidean: return static_cast<float>(std::sqrt(sum));
    case Metric::cosine:
      if (query_norm == 0 || row_norm == 0) return 1;
      // sqrt(x * x) == x in IEEE arithmetic: the distance of a vector to itself is exactly 0.
      return static_cast<float>(std::clamp(1 - sum / std::sqrt(query_norm * row_norm), 0.0, 2.0));
    case Metric::sqeuclidean:
    case Metric::inner_product: break;
  }
  return static_cast<float>(sum);
}

// Orders answers: smaller is better for every metric. Exact in both directions.
constexpr float sort_key(Metric metric, float reported_distance) noexcept {
  return metric == Metric::inner_product ? -reported_distance : reported_distance;
}
constexpr float distance_of_key(Metric metric, float key) noexcept { return sort_key(metric, key); }

// Pads result rows with fewer than k neighbours.
constexpr float padding_distance(Metric metric) noexcept {
  return distance_of_key(metric, std::numeric_limits<float>::infinity());
}

}  // namespace nearwise
