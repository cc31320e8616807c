// k-means against Lloyd's iterations in double precision, and what every clustering promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "support/kmeans_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::same;

class KMeansMetrics : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, KMeansMetrics, testing::ValuesIn(support::kmeans_metrics),
                         support::metric_name);

// The first rows as centroids; enough of them differ that no cluster loses all its rows.
TEST_P(KMeansMetrics, IteratesAsLloydDoes) {
  std::uint64_t seed = 1000;
  for (const ElementType type : support::every_type)
    for (const Kind kind : {Kind::normal, Kind::uniform, Kind::integers, Kind::constant_columns})
      for (const auto& [rows, dim, clusters] : {std::tuple<std::size_t, std::size_t, std::size_t>{200, 7, 5},
                                                {210, 8, 6},
                                                {180, 4, 5},
                                                {331, 16, 9},
                                                {70, 33, 3}}) {
        const Rows data(support::generate(kind, rows, dim, ++seed), type, support::Layout::unaligned);
        const RowsView initial = data.view().slice(0, clusters);
        const oracle::Clustering expected = oracle::lloyd(data, initial, 4, GetParam());
        if (std::ranges::count(expected.sizes, 0U) > 0) continue;
        for (const Context& context : support::every_instruction_set())
          EXPECT_TRUE(
              same(expected,
                   train_kmeans(context, data, clusters,
                                {.metric = GetParam(), .iterations = 4, .tolerance = 0, .initial = initial})))
              << name(type) << " " << name(kind) << " " << context.isa() << " seed " << seed;
      }
}

TEST_P(KMeansMetrics, TheErrorFallsAndIsTheErrorOfTheCentroids) {
  for (const Kind kind : {Kind::normal, Kind::near_duplicates, Kind::exact_duplicates, Kind::zero_rows,
                          Kind::sparse, Kind::offset_1e4}) {
    SCOPED_TRACE(name(kind));
    const Rows data(support::generate(kind, 1500, 12, 2000), ElementType::f32);
    const KMeans trained =
        train_kmeans(Context::cpu(), data, 40, {.metric = GetParam(), .iterations = 30, .tolerance = 0});
    ASSERT_FALSE(trained.errors.empty());
    for (std::size_t i = 1; i < trained.errors.size(); ++i)
      EXPECT_LE(trained.errors[i], trained.errors[i - 1] * (1 + 1e-6)) << "iteration " << i;
    EXPECT_EQ(std::accumulate(trained.sizes.begin(), trained.sizes.end(), std::size_t{0}), 1500U);
    // One more look at the result: no worse than its last iteration.
    const oracle::Clustering again = oracle::lloyd(data, trained.centroids, 1, GetParam());
    EXPECT_LE(again.errors[0], trained.errors.back() * (1 + 1e-6));
    if (GetParam() != Metric::sqeuclidean)
      for (std::size_t c = 0; c < 40; ++c) {
        const auto centroid = trained.centroids.row(c);
        EXPECT_NEAR(std::inner_product(centroid.begin(), centroid.end(), centroid.begin(), 0.0), 1, 1e-5);
      }
  }
}

// k-means++ finds every cluster that is far from the others, and one iteration its mean.
TEST_P(KMeansMetrics, FindsSeparateClusters) {
  const std::size_t clusters = 12;
  const Rows data(support::separate_clusters(1200, 16, clusters, 3), ElementType::f32);
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    const KMeans trained = train_kmeans(Context::cpu({.seed = seed}), data, clusters, {.metric = GetParam()});
    EXPECT_EQ(trained.sizes, std::vector<std::size_t>(clusters, 100)) << "seed " << seed;
    EXPECT_TRUE(trained.converged);
  }
}

TEST(KMeansStart, SeedsAreRowsAndDifferBySeed) {
  const Rows data(support::generate(Kind::normal, 500, 6, 5), ElementType::f32);
  for (const Seeding seeding : {Seeding::plus_plus, Seeding::random}) {
    // A single iteration with as many clusters as rows leaves every row a centroid.
    const KMeans all = train_kmeans(Context::cpu(), data, 500, {.iterations = 1, .seeding = seeding});
    EXPECT_EQ(all.errors, std::vector<double>{0});
    EXPECT_EQ(all.sizes, std::vector<std::size_t>(500, 1));
    EXPECT_TRUE(all.converged);
    const KMeansOptions once = {.iterations = 1, .seeding = seeding};
    const KMeans first = train_kmeans(Context::cpu({.seed = 1}), data, 20, once);
    EXPECT_FALSE(same(first, train_kmeans(Context::cpu({.seed = 2}), data, 20, once)));
    EXPECT_TRUE(same(first, train_kmeans(Context::cpu({.seed = 1}), data, 20, once)));
  }
}

// Would catch: seeds drawn without regard to distance.
TEST(KMeansStart, PlusPlusBeginsBetterThanRandom) {
  const Rows data(support::generate(Kind::near_duplicates, 6000, 8, 6), ElementType::f32);
  const auto first_error = [&](Seeding seeding) {
    return train_kmeans(Context::cpu(), data, 21, {.iterations = 1, .seeding = seeding}).errors[0];
  };
  EXPECT_LT(first_error(Seeding::plus_plus), first_error(Seeding::random) / 10);
}

TEST(KMeansEmpty, ClustersWithoutRowsAreMovedToWhereTheErrorIs) {
  const std::size_t clusters = 8;
  const Rows data(support::separate_clusters(800, 10, clusters, 7), ElementType::f32);
  // All centroids at one place: the first takes all rows.
  const Rows initial(support::repeated(support::separate_clusters(1, 10, 1, 8), clusters), ElementType::f32);
  const KMeans trained = train_kmeans(Context::cpu(), data, clusters, {.initial = initial});
  EXPECT_EQ(std::ranges::count(trained.sizes, 0U), 0);
  for (std::size_t i = 1; i < trained.errors.size(); ++i)
    EXPECT_LE(trained.errors[i], trained.errors[i - 1] * (1 + 1e-6));
  // Most of the error is between the clusters: it goes when each has a centroid of its own, or nearly so.
  EXPECT_LT(trained.errors.back(), trained.errors.front() / 3);
}

TEST(KMeansEmpty, FewerDistinctRowsThanClusters) {
  for (const Metric metric : support::kmeans_metrics)
    for (const Seeding seeding : {Seeding::plus_plus, Seeding::random}) {
      const Rows data(support::repeated(support::generate(Kind::integers, 1, 5, 9), 60), ElementType::i8);
      const KMeans trained = train_kmeans(Context::cpu(), data, 7, {.metric = metric, .seeding = seeding});
      EXPECT_TRUE(trained.converged);
      EXPECT_EQ(std::ranges::count(trained.sizes, 0U), 6);
      if (metric == Metric::sqeuclidean) {
        EXPECT_EQ(trained.errors, std::vector<double>{0});
      }
    }
}

// One far row would have a cluster of its own. Would catch: min_cluster_size without effect.
TEST(KMeansEmpty, TinyClustersAreGivenUp) {
  support::Values values = support::generate(Kind::normal, 400, 4, 10);
  for (std::size_t i = 0; i < 4; ++i) values(17, i) = 60;
  const Rows data(values, ElementType::f32);
  const KMeans lonely = train_kmeans(Context::cpu(), data, 6, {.iterations = 30});
  EXPECT_EQ(std::ranges::min(lonely.sizes), 1U);
  const KMeans trained = train_kmeans(Context::cpu(), data, 6, {.iterations = 30, .min_cluster_size = 20});
  EXPECT_GT(std::ranges::min(trained.sizes), 1U);
}

TEST(KMeansEnd, StopsWhenNothingChanges) {
  const Rows data(support::separate_clusters(300, 8, 5, 11), ElementType::f32);
  const KMeans trained = train_kmeans(Context::cpu(), data, 5, {.iterations = 100, .tolerance = 0});
  EXPECT_TRUE(trained.converged);
  EXPECT_LT(trained.errors.size(), 100U);
  EXPECT_EQ(trained.errors.back(), trained.errors[trained.errors.size() - 2]);
  const KMeans stopped = train_kmeans(Context::cpu(), data, 5, {.iterations = 1});
  EXPECT_FALSE(stopped.converged);
  EXPECT_EQ(stopped.errors.size(), 1U);
}

// A larger tolerance ends earlier.
TEST(KMeansEnd, ToleranceIsAShareOfTheError) {
  const Rows data(support::generate(Kind::normal, 4000, 8, 12), ElementType::f32);
  const auto iterations = [&](double tolerance) {
    return train_kmeans(Context::cpu(), data, 50, {.iterations = 60, .tolerance = tolerance}).errors.size();
  };
  EXPECT_LT(iterations(0.05), iterations(0.001));
}

}  // namespace
}  // namespace nearwise
