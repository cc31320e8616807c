// Partitions in order: all of them once, near ones together, and groups of like mass.
#include "plan/partition/order_partitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/math/random.h"
#include "io/expect_error.h"

namespace nearwise::plan {
namespace {

// Clouds of 50 partitions, far from each other, mixed.
Matrix<float> clouds(std::size_t count) {
  Matrix<float> centroids(count * 50, 3);
  const Random random(5);
  for (std::size_t partition = 0; partition < centroids.rows(); ++partition)
    for (std::size_t i = 0; i < 3; ++i)
      centroids(partition, i) = static_cast<float>(
          random.normal(partition * 3 + i) +
          (i == partition % count % 3 ? 100.0 * static_cast<double>(partition % count) : 0));
  return centroids;
}

bool is_whole(std::vector<std::uint32_t> order) {
  std::ranges::sort(order);
  std::vector<std::uint32_t> all(order.size());
  std::iota(all.begin(), all.end(), 0U);
  return order == all;
}

TEST(OrderPartitions, CloudsStayTogether) {
  const Matrix<float> centroids = clouds(8);
  const std::vector<double> mass(centroids.rows(), 1);
  for (const std::size_t groups : {1, 8}) {
    PartitionGroups cut = cut_partitions(CancelFlag(), centroids, mass, groups);
    order_partitions(CancelFlag(), centroids, mass, cut);
    EXPECT_TRUE(is_whole(cut.order));
    std::size_t changes = 0;
    for (std::size_t i = 1; i < cut.order.size(); ++i)
      changes += cut.order[i] % 8 != cut.order[i - 1] % 8 ? 1 : 0;
    // Mixed, there would be some 350.
    EXPECT_LE(changes, 30U);
  }
}

TEST(OrderPartitions, GroupsHaveLikeMass) {
  const Matrix<float> centroids = clouds(4);
  std::vector<double> mass(centroids.rows());
  for (std::size_t partition = 0; partition < mass.size(); ++partition)
    mass[partition] = partition % 4 == 0 ? 10 : 1;
  const PartitionGroups cut = cut_partitions(CancelFlag(), centroids, mass, 5);
  ASSERT_EQ(cut.ends.size(), 5U);
  EXPECT_EQ(cut.ends.back(), cut.order.size());
  std::uint64_t begin = 0;
  for (const std::uint64_t end : cut.ends) {
    ASSERT_LE(begin, end);
    double sum = 0;
    for (std::uint64_t i = begin; i < end; ++i) sum += mass[cut.order[i]];
    EXPECT_NEAR(sum, 650.0 / 5, 15);
    begin = end;
  }
}

TEST(OrderPartitions, PartitionsInOnePlaceHeavyOnesAndFew) {
  Matrix<float> same(100, 2);
  std::fill_n(same.data(), 200, 1.5F);
  std::vector<double> mass(100, 1);
  const Matrix<float> bipartite = clouds(2);
  for (const std::size_t groups : {1, 3, 100, 130}) {
    PartitionGroups cut = cut_partitions(CancelFlag(), same, mass, groups);
    order_partitions(CancelFlag(), same, mass, cut);
    EXPECT_TRUE(is_whole(cut.order));
    mass[17] = 1e6;
    cut = cut_partitions(CancelFlag(), bipartite, mass, groups);
    EXPECT_TRUE(is_whole(cut.order));
    EXPECT_TRUE(std::ranges::is_sorted(cut.ends));
    EXPECT_EQ(cut.ends.size(), groups);
    EXPECT_EQ(cut.ends.back(), 100U);
  }
}

TEST(OrderPartitions, IsCancelled) {
  const Matrix<float> centroids = clouds(2);
  const std::vector<double> mass(100, 1);
  CancelFlag cancel;
  PartitionGroups cut = cut_partitions(cancel, centroids, mass, 3);
  cancel.set();
  EXPECT_ERROR(cut_partitions(cancel, centroids, mass, 3), cancelled, "cancelled");
  EXPECT_ERROR(order_partitions(cancel, centroids, mass, cut), cancelled, "cancelled");
}

}  // namespace
}  // namespace nearwise::plan
