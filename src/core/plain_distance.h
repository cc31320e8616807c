// Reported distances computed by definition (core/distance.h), pair by pair: for few pairs, and to check
// kernels.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/distance.h"

namespace nearwise {

template <typename Term>
double sum_over(std::size_t dim, const Term& term) {
  std::array<double, distance_lanes> lanes{};
  for (std::size_t i = 0; i < dim; ++i) lanes[i % distance_lanes] += term(i);
  return sum_of_lanes(lanes.data());
}

inline double sum_of_squares(std::span<const double> row) {
  return sum_over(row.size(), [&](std::size_t i) { return row[i] * row[i]; });
}

// query_norm: the query's sum_of_squares for cosine, anything for other metrics.
inline float plain_distance(Metric metric, std::span<const double> query, double query_norm,
                            std::span<const double> row) {
  if (is_euclidean(metric))
    return reported(metric,
                    sum_over(row.size(),
                             [&](std::size_t i) {
                               const double difference = query[i] - row[i];
                               return difference * difference;
                             }),
                    0, 0);
  const double products = sum_over(row.size(), [&](std::size_t i) { return query[i] * row[i]; });
  return reported(metric, products, query_norm, metric == Metric::cosine ? sum_of_squares(row) : 0);
}

}  // namespace nearwise
