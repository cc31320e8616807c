// Rows as k-means uses them: in f64, normalized for cosine.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "core/convert.h"
#include "core/distance.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// Centroids are normalized and compared by inner products.
constexpr bool is_spherical(Metric metric) { return !is_euclidean(metric); }

// Normalizes; a zero vector stays zero.
inline void scale_to_unit(std::span<double> vector) {
  double lanes[distance_lanes] = {};
  for (std::size_t i = 0; i < vector.size(); ++i) lanes[i % distance_lanes] += vector[i] * vector[i];
  const double length = std::sqrt(sum_of_lanes(lanes));
  if (length == 0) return;
  for (double& element : vector) element /= length;
}

inline bool is_zero(const RowsView& rows, std::size_t index) {
  return visit_element_type(rows.type(), [&](auto tag) {
    for (std::size_t i = 0; i < rows.dim(); ++i)
      if (element<decltype(tag)>(rows.row(index), i) != 0) return false;
    return true;
  });
}

// A row as a centroid. If it must be normalized and is zero, the first unit vector is used.
inline void row_to_centroid(const RowsView& rows, std::size_t index, Metric metric, std::span<double> scratch,
                            std::span<float> centroid) {
  row_to_double(rows, index, scratch.data());
  if (is_spherical(metric)) {
    if (is_zero(rows, index)) scratch[0] = 1;
    scale_to_unit(scratch);
  }
  for (std::size_t i = 0; i < centroid.size(); ++i) centroid[i] = static_cast<float>(scratch[i]);
}

// The squared distance of a row, normalized for cosine, from a centroid.
inline double squared_distance(const RowsView& rows, std::size_t index, Metric metric,
                               std::span<double> scratch, std::span<const float> centroid) {
  row_to_double(rows, index, scratch.data());
  if (metric == Metric::cosine) scale_to_unit(scratch);
  double lanes[distance_lanes] = {};
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    const double difference = scratch[i] - static_cast<double>(centroid[i]);
    lanes[i % distance_lanes] += difference * difference;
  }
  return sum_of_lanes(lanes);
}

}  // namespace nearwise::cluster
