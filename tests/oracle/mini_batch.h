// k-means on given batches of rows, executed in double precision: a centroid is the mean of all rows that it
// was given, those of batch t (from 1) with the weight t^2.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "oracle/kmeans.h"

namespace nearwise::oracle {

// batches: the row numbers of each. errors: the sum over a batch.
inline Clustering mini_batches(RowsView rows, RowsView initial,
                               const std::vector<std::vector<std::size_t>>& batches) {
  const std::size_t dim = rows.dim();
  const std::vector<double> values = to_doubles(rows);
  const std::vector<double> start = to_doubles(initial);
  Clustering result;
  result.centroids.assign(start.begin(), start.end());
  result.sizes.assign(initial.rows(), 0);
  std::vector<double> sums(start.size(), 0.0);
  std::vector<double> weights(initial.rows(), 0.0);
  for (std::size_t batch = 0; batch < batches.size(); ++batch) {
    const std::vector<double> centroids(result.centroids.begin(), result.centroids.end());
    const auto weight = static_cast<double>((batch + 1) * (batch + 1));
    double error = 0;
    for (const std::size_t row : batches[batch]) {
      const std::span<const double> own(values.data() + row * dim, dim);
      Candidate best;
      for (std::size_t c = 0; c < initial.rows(); ++c) {
        const Candidate candidate = {reported(Metric::sqeuclidean, own, {centroids.data() + c * dim, dim}),
                                     static_cast<Id>(c)};
        if (c == 0 || better(Metric::sqeuclidean, candidate, best)) best = candidate;
      }
      const auto c = static_cast<std::size_t>(best.id);
      ++result.sizes[c];
      weights[c] += weight;
      for (std::size_t i = 0; i < dim; ++i) {
        sums[c * dim + i] += weight * own[i];
        error += (own[i] - centroids[c * dim + i]) * (own[i] - centroids[c * dim + i]);
      }
    }
    result.errors.push_back(error);
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (weights[i / dim] > 0) result.centroids[i] = static_cast<float>(sums[i] / weights[i / dim]);
  }
  return result;
}

}  // namespace nearwise::oracle
