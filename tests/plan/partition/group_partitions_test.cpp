// Groups of partitions: their rows counted naively, small enough, and as few as that takes.
#include "plan/partition/group_partitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "core/math/random.h"
#include "io/expect_error.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

// Partitions on a line, and rows in up to three that follow each other.
struct Line {
  explicit Line(std::size_t count, std::size_t rows)
      : centroids(count, 2), partitions(rows * 3, graph::no_partition) {
    for (std::size_t partition = 0; partition < count; ++partition) {
      centroids(partition, 0) = static_cast<float>(partition);
      centroids(partition, 1) = static_cast<float>(partition % 2);
    }
    const Random random(11);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t first = random.below(2 * row, count);
      const std::size_t own = 1 + random.below(2 * row + 1, 3);
      for (std::size_t i = 0; i < std::min(own, count - first); ++i)
        partitions[row * 3 + i] = static_cast<std::uint32_t>(first + i);
    }
  }
  SampledRows rows() const { return {partitions, 3}; }

  Matrix<float> centroids;
  std::vector<std::uint32_t> partitions;
};

std::vector<double> counted(const SampledRows& rows, const PartitionGroups& groups) {
  std::vector<double> counts;
  std::uint64_t begin = 0;
  for (const std::uint64_t end : groups.ends) {
    const std::set<std::uint32_t> own(groups.order.begin() + static_cast<std::ptrdiff_t>(begin),
                                      groups.order.begin() + static_cast<std::ptrdiff_t>(end));
    double count = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto partitions = rows.partitions.subspan(row * rows.overlap, rows.overlap);
      count +=
          std::ranges::any_of(partitions, [&](std::uint32_t partition) { return own.contains(partition); })
              ? 1
              : 0;
    }
    counts.push_back(count);
    begin = end;
  }
  return counts;
}

// Partitions come in pairs that lie far apart and have their rows in common: no cut across an axis keeps them
// together.
TEST(GroupPartitions, PartitionsWithRowsInCommonAreTogether) {
  constexpr std::uint32_t pairs = 100;
  Matrix<float> centroids(2 * pairs, 2);
  std::vector<std::uint32_t> partitions;
  const Random random(5);
  for (std::uint32_t partition = 0; partition < 2 * pairs; ++partition) {
    centroids(partition, 0) = static_cast<float>(random.below(2 * partition, 1000));
    centroids(partition, 1) = static_cast<float>(random.below(2 * partition + 1, 1000));
    for (int row = 0; row < 20; ++row)
      partitions.insert(partitions.end(), {partition, (partition + pairs) % (2 * pairs)});
  }
  const SampledRows rows = {partitions, 2};
  const std::vector<double> sizes = counted(rows, group_partitions(CancelFlag(), centroids, rows, 0.25, 20));
  EXPECT_LE(*std::ranges::max_element(sizes), 0.25 * static_cast<double>(rows.size()));
  // Cut by place alone, almost every row is in two groups.
  EXPECT_LE(std::accumulate(sizes.begin(), sizes.end(), 0.0), 1.1 * static_cast<double>(rows.size()));
  const std::vector<double> mass(2 * pairs, 1);
  const std::vector<double> by_place = counted(rows, cut_partitions(CancelFlag(), centroids, mass, 4));
  EXPECT_GE(std::accumulate(by_place.begin(), by_place.end(), 0.0), 1.5 * static_cast<double>(rows.size()));
}

TEST(GroupPartitions, FewAndSmallEnough) {
  const Line line(200, 20'000);
  for (const double share : {1.0, 0.5, 0.26, 0.1, 0.04}) {
    const PartitionGroups groups = group_partitions(CancelFlag(), line.centroids, line.rows(), share, 60);
    ASSERT_EQ(groups.ends.size(), 60U);
    EXPECT_EQ(groups.ends.back(), 200U);
    std::vector<std::uint32_t> sorted = groups.order;
    std::ranges::sort(sorted);
    for (std::uint32_t partition = 0; partition < 200; ++partition) EXPECT_EQ(sorted[partition], partition);
    const std::vector<double> sizes = counted(line.rows(), groups);
    EXPECT_LE(*std::ranges::max_element(sizes), share * 20'000) << share;
    // A cut of the line is crossed by a partition's rows and a half's, some 150 of 20,000 a time.
    const auto used = std::ranges::count_if(sizes, [](double size) { return size > 0; });
    EXPECT_LE(static_cast<double>(used), 1.3 / share + 1) << share;
  }
}

TEST(GroupPartitions, MoreThanThereMayBe) {
  const Line line(50, 5000);
  const PartitionGroups groups = group_partitions(CancelFlag(), line.centroids, line.rows(), 0.01, 4);
  const std::vector<double> sizes = counted(line.rows(), groups);
  ASSERT_EQ(sizes.size(), 4U);
  for (const double size : sizes) EXPECT_NEAR(size, 1300, 300);
}

// Also where nothing but the moves of partitions takes time: all of them are in one place.
TEST(GroupPartitions, IsCancelled) {
  Line line(50, 5000);
  CancelFlag cancel;
  cancel.set();
  EXPECT_ERROR(group_partitions(cancel, line.centroids, line.rows(), 0.1, 20), cancelled, "cancelled");
  std::fill_n(line.centroids.data(), 100, 1.0F);
  EXPECT_ERROR(group_partitions(cancel, line.centroids, line.rows(), 1, 20), cancelled, "cancelled");
}

}  // namespace
}  // namespace nearwise::plan
