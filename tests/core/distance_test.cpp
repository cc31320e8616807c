// The definition of a reported distance against the oracle's, and the order that follows from it.
#include "core/distance.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/math/random.h"
#include "oracle/knn.h"

namespace nearwise {
namespace {

constexpr std::array every_metric = {Metric::sqeuclidean, Metric::euclidean, Metric::inner_product,
                                     Metric::cosine};

struct Sums {
  double difference = 0;
  double product = 0;
  double query_norm = 0;
  double row_norm = 0;
};

Sums accumulate(const std::vector<double>& query, const std::vector<double>& row) {
  std::array<std::array<double, distance_lanes>, 4> lanes{};
  for (std::size_t i = 0; i < query.size(); ++i) {
    const std::size_t lane = i % distance_lanes;
    lanes[0][lane] += (query[i] - row[i]) * (query[i] - row[i]);
    lanes[1][lane] += query[i] * row[i];
    lanes[2][lane] += query[i] * query[i];
    lanes[3][lane] += row[i] * row[i];
  }
  return {sum_of_lanes(lanes[0].data()), sum_of_lanes(lanes[1].data()), sum_of_lanes(lanes[2].data()),
          sum_of_lanes(lanes[3].data())};
}

float report(Metric metric, const std::vector<double>& query, const std::vector<double>& row) {
  const Sums sums = accumulate(query, row);
  const bool by_product = metric == Metric::inner_product || metric == Metric::cosine;
  return reported(metric, by_product ? sums.product : sums.difference, sums.query_norm, sums.row_norm);
}

std::vector<double> random_vector(std::size_t dim, std::uint64_t seed, double scale) {
  std::vector<double> values(dim);
  for (std::size_t i = 0; i < dim; ++i) values[i] = static_cast<float>(scale * Random(seed).normal(i));
  return values;
}

TEST(Distance, EqualsTheOracleToTheBit) {
  for (const Metric metric : every_metric)
    for (const std::size_t dim : {1U, 2U, 7U, 8U, 9U, 15U, 16U, 17U, 100U, 1000U})
      for (const double scale : {1e-30, 1.0, 1e18})
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
          const std::vector<double> query = random_vector(dim, 2 * seed, scale);
          const std::vector<double> row = random_vector(dim, 2 * seed + 1, scale);
          ASSERT_EQ(report(metric, query, row), oracle::reported(metric, query, row))
              << name(metric) << ' ' << dim;
        }
}

TEST(Distance, TheTreeOverTheLanesIsFixed) {
  // With 2^53 a one is lost or kept depending on whom it meets: only one tree gives all these sums.
  constexpr double big = 0x1p53;
  const auto sum = [](std::array<double, 8> lanes) { return sum_of_lanes(lanes.data()); };
  EXPECT_EQ(sum({big, 0, 0, 0, 1, 0, 0, 0}), big);
  EXPECT_EQ(sum({big, 0, 1, 0, 0, 0, 1, 0}), big + 2);
  EXPECT_EQ(sum({0, big, 0, 1, 0, 0, 0, 1}), big + 2);
  EXPECT_EQ(sum({1, big, 0, 0, 1, 0, 0, 0}), big + 2);
  EXPECT_EQ(sum({0, 1, 0, 0, 0, 1, 0, big}), big + 2);
  EXPECT_EQ(sum({1, 2, 4, 8, 16, 32, 64, 128}), 255);
}

TEST(Distance, AVectorAndItselfAreExactlyZeroApart) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const double scale = std::pow(10.0, 60 * Random(9).uniform(seed) - 30);
    const std::vector<double> values = random_vector(1 + seed % 100, seed, scale);
    for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean, Metric::cosine})
      ASSERT_EQ(report(metric, values, values), 0.0F) << name(metric) << ' ' << seed;
  }
}

TEST(Distance, CosineStaysBetweenZeroAndTwo) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::vector<double> values = random_vector(1 + seed % 100, seed, 1);
    std::vector<double> opposite = values;
    std::vector<double> longer = values;
    for (double& value : opposite) value *= -3;
    for (double& value : longer) value *= 7;
    EXPECT_LE(report(Metric::cosine, values, opposite), 2.0F);
    EXPECT_NEAR(report(Metric::cosine, values, opposite), 2.0F, 1e-6);
    EXPECT_GE(report(Metric::cosine, values, longer), 0.0F);
    EXPECT_NEAR(report(Metric::cosine, values, longer), 0.0F, 1e-6);
  }
}

TEST(Distance, AZeroVectorIsAtCosineOneFromEverything) {
  const std::vector<double> zero(5, 0.0);
  const std::vector<double> other = random_vector(5, 1, 1);
  EXPECT_EQ(report(Metric::cosine, zero, other), 1.0F);
  EXPECT_EQ(report(Metric::cosine, other, zero), 1.0F);
  EXPECT_EQ(report(Metric::cosine, zero, zero), 1.0F);
}

TEST(Distance, SmallerKeysAreBetterAndKeysGoBackExactly) {
  for (const Metric metric : every_metric) {
    const float better = metric == Metric::inner_product ? 2.0F : 1.0F;
    const float worse = metric == Metric::inner_product ? 1.0F : 2.0F;
    EXPECT_LT(sort_key(metric, better), sort_key(metric, worse));
    for (const float value : {0.0F, 1.5F, -3.25F, 1e-45F, 3e38F, std::numeric_limits<float>::infinity()})
      EXPECT_EQ(distance_of_key(metric, sort_key(metric, value)), value);
    // Padding is worse than any distance, also than the largest finite one.
    EXPECT_GT(sort_key(metric, padding_distance(metric)), sort_key(metric, better));
    EXPECT_EQ(padding_distance(metric), oracle::worst_value(metric));
  }
}

}  // namespace
}  // namespace nearwise
