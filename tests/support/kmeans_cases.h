// Clusterings compared, and data whose clusters are known.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nearwise/kmeans.h"
#include "oracle/kmeans.h"
#include "support/knn_cases.h"

namespace nearwise::support {

inline constexpr std::array kmeans_metrics = {Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

// Every byte of the result.
inline ::testing::AssertionResult same(const KMeans& expected, const KMeans& given) {
  if (expected.converged != given.converged || expected.sizes != given.sizes)
    return ::testing::AssertionFailure() << "sizes or convergence differ";
  if (expected.errors != given.errors) return ::testing::AssertionFailure() << "errors differ";
  const std::size_t bytes = expected.centroids.rows() * expected.centroids.cols() * sizeof(float);
  if (expected.centroids.rows() != given.centroids.rows() ||
      expected.centroids.cols() != given.centroids.cols() ||
      std::memcmp(expected.centroids.data(), given.centroids.data(), bytes) != 0)
    return ::testing::AssertionFailure() << "centroids differ";
  return ::testing::AssertionSuccess();
}

// Centroids and sizes to the bit; errors up to the order of their sum.
inline ::testing::AssertionResult same(const oracle::Clustering& expected, const KMeans& given) {
  if (expected.sizes != given.sizes) return ::testing::AssertionFailure() << "sizes differ";
  if (expected.errors.size() != given.errors.size())
    return ::testing::AssertionFailure()
           << expected.errors.size() << " iterations, got " << given.errors.size();
  for (std::size_t i = 0; i < expected.errors.size(); ++i)
    if (std::abs(expected.errors[i] - given.errors[i]) > 1e-10 * expected.errors[i])
      return ::testing::AssertionFailure()
             << fmt::format("error {}: expected {}, got {}", i, expected.errors[i], given.errors[i]);
  for (std::size_t i = 0; i < expected.centroids.size(); ++i)
    if (expected.centroids[i] != given.centroids.data()[i])
      return ::testing::AssertionFailure() << fmt::format("centroid element {}: expected {}, got {}", i,
                                                          expected.centroids[i], given.centroids.data()[i]);
  return ::testing::AssertionSuccess();
}

// Rows around `clusters` points far apart, row r around point r % clusters.
inline Values separate_clusters(std::size_t rows, std::size_t dim, std::size_t clusters, std::uint64_t seed) {
  const Random random = random_for(seed, Purpose::elements);
  const Random centre = random_for(seed, Purpose::centres);
  Values values(rows, dim);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < dim; ++i)
      values(row, i) = 4 * centre.normal(row % clusters * dim + i) + 0.005 * random.normal(row * dim + i);
  return values;
}

}  // namespace nearwise::support
