// k-means in two levels: as many clusters as asked for, nearly as good, the same bytes everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>

#include "support/cancelling.h"
#include "support/kmeans_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::same;

TEST(HierarchicalKMeans, HasAllClustersAndHardlyMoreError) {
  for (const Metric metric : support::kmeans_metrics)
    for (const std::size_t clusters : {1UL, 2UL, 3UL, 50UL, 301UL}) {
      const Rows data(support::generate(Kind::normal, 4000, 6, 30), ElementType::f32);
      const KMeansOptions options = {.metric = metric, .iterations = 8};
      const KMeans trained = train_hierarchical_kmeans(Context::cpu(), data, clusters, options);
      ASSERT_EQ(trained.centroids.rows(), clusters);
      ASSERT_EQ(trained.sizes.size(), clusters);
      EXPECT_EQ(std::accumulate(trained.sizes.begin(), trained.sizes.end(), std::size_t{0}), 4000U);
      ASSERT_EQ(trained.errors.size(), 1U);
      const KMeans flat = train_kmeans(Context::cpu(), data, clusters, options);
      EXPECT_LT(trained.errors[0], flat.errors.back() * 1.15) << name(metric) << " " << clusters;
      // Rows may be nearer to a centroid of another part, never farther.
      const oracle::Clustering again = oracle::lloyd(data, trained.centroids, 1, metric);
      EXPECT_LE(again.errors[0], trained.errors[0] * (1 + 1e-6));
    }
}

// As many clusters as rows, and rows of which few differ: shares never exceed what a part has.
TEST(HierarchicalKMeans, ManyClustersOfFewRows) {
  for (const Kind kind : {Kind::normal, Kind::integers, Kind::identical, Kind::zero_rows}) {
    const Rows data(support::generate(kind, 150, 2, 31), ElementType::i8);
    for (const std::size_t clusters : {100UL, 149UL, 150UL}) {
      const KMeans trained = train_hierarchical_kmeans(Context::cpu(), data, clusters);
      EXPECT_EQ(trained.sizes.size(), clusters);
      EXPECT_EQ(std::accumulate(trained.sizes.begin(), trained.sizes.end(), std::size_t{0}), 150U);
    }
  }
}

TEST(HierarchicalKMeansThreads, AnyNumberOfThreadsGivesTheSameBytes) {
  const Rows data(support::generate(Kind::exact_duplicates, 6000, 7, 32), ElementType::f16);
  const KMeans expected = train_hierarchical_kmeans(Context::cpu({.threads = 1}), data, 200);
  for (const int threads : {2, 5})
    EXPECT_TRUE(same(expected, train_hierarchical_kmeans(Context::cpu({.threads = threads}), data, 200)));
  for (const Context& context : support::every_instruction_set())
    EXPECT_TRUE(same(expected, train_hierarchical_kmeans(context, data, 200))) << context.isa();
}

TEST(HierarchicalKMeansThreads, StopsWhenCancelledAndGivesMemoryBack) {
  const Rows data(support::generate(Kind::normal, 3000, 8, 33), ElementType::f32);
  for (const int when : {0, 1, 4})
    support::expect_cancelled_at_report(
        when, 2, "", [&](const Context& context) { train_hierarchical_kmeans(context, data, 100); });
  const auto error = support::error_from(
      [&] { train_hierarchical_kmeans(Context::cpu({.memory_limit = 50'000}), data, 100); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
  const auto refused = support::error_from(
      [&] { train_hierarchical_kmeans(Context::cpu(), data, 3, {.initial = data.view().slice(0, 3)}); });
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code(), ErrorCode::invalid_argument);
}

// Nine of ten rows become one part, whose size nobody knows before the first level.
TEST(HierarchicalKMeans, TheLimitThatARefusalNamesSufficesForADenseCluster) {
  support::Values rows = support::generate(Kind::normal, 3000, 64, 34);
  for (std::size_t row = 0; row < 2700; ++row)
    for (double& value : rows.row(row)) value *= 1e-3;
  const Rows data(rows, ElementType::f32);
  const auto train = [&](std::uint64_t limit) {
    train_hierarchical_kmeans(Context::cpu({.memory_limit = limit}), data, 100);
  };
  const auto refused = support::error_from([&] { train(1); });
  ASSERT_TRUE(refused.has_value());
  const std::string message = refused->what();
  const std::size_t begin = message.find("small, ") + 7;
  ASSERT_NE(message.find(" MiB would suffice", begin), std::string::npos) << message;
  train(static_cast<std::uint64_t>(std::stod(message.substr(begin)) * (1 << 20)));
}

}  // namespace
}  // namespace nearwise
