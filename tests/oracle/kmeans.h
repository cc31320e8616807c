// Lloyd's iterations, executed: every distance in double precision by the definition of exact search, sums in
// the order of the rows. Clusters that lose all their rows keep their centroid. Centroids of the spherical
// metrics have length 1, from the first on.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "oracle/knn.h"

namespace nearwise::oracle {

struct Clustering {
  std::vector<float> centroids;  // [clusters, dim]
  std::vector<std::size_t> sizes;
  std::vector<double> errors;
};

inline double length_of(std::span<const double> vector) {
  return std::sqrt(fixed_order_sum(vector.size(), [&](std::size_t i) { return vector[i] * vector[i]; }));
}

inline void scale_to_unit(std::span<double> vector) {
  const double length = length_of(vector);
  if (length == 0) return;
  for (double& element : vector) element /= length;
}

inline Clustering lloyd(RowsView rows, RowsView initial, std::size_t iterations, Metric metric) {
  const std::size_t dim = rows.dim();
  const std::size_t clusters = initial.rows();
  const std::vector<double> given = to_doubles(rows);
  std::vector<double> values = given;
  if (metric == Metric::cosine)
    for (std::size_t row = 0; row < rows.rows(); ++row) scale_to_unit({values.data() + row * dim, dim});
  Clustering result;
  std::vector<double> start = to_doubles(initial);
  for (std::size_t c = 0; c < clusters && metric != Metric::sqeuclidean; ++c)
    scale_to_unit({start.data() + c * dim, dim});
  for (const double element : start) result.centroids.push_back(static_cast<float>(element));

  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    const std::vector<double> centroids(result.centroids.begin(), result.centroids.end());
    std::vector<double> sums(clusters * dim, 0.0);
    result.sizes.assign(clusters, 0);
    double error = 0;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      std::size_t nearest = 0;
      Candidate best;
      for (std::size_t c = 0; c < clusters; ++c) {
        const Candidate candidate = {
            reported(metric, {given.data() + row * dim, dim}, {centroids.data() + c * dim, dim}),
            static_cast<Id>(c)};
        if (c == 0 || better(metric, candidate, best)) {
          best = candidate;
          nearest = c;
        }
      }
      ++result.sizes[nearest];
      for (std::size_t i = 0; i < dim; ++i) {
        const double difference = values[row * dim + i] - centroids[nearest * dim + i];
        error += difference * difference;
        sums[nearest * dim + i] += values[row * dim + i];
      }
    }
    result.errors.push_back(error);
    for (std::size_t c = 0; c < clusters; ++c) {
      const std::span<double> sum(sums.data() + c * dim, dim);
      if (result.sizes[c] == 0) continue;
      if (metric == Metric::sqeuclidean)
        for (double& element : sum) element /= static_cast<double>(result.sizes[c]);
      else if (length_of(sum) > 0)
        scale_to_unit(sum);
      else
        continue;
      for (std::size_t i = 0; i < dim; ++i) result.centroids[c * dim + i] = static_cast<float>(sum[i]);
    }
  }
  return result;
}

}  // namespace nearwise::oracle
