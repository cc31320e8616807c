// The bound of a join by partitions, by definition and on data that rounds badly: of a pair within the
// threshold in two partitions, each vector reaches the other's. And the bound is not too wide.
#include "plan/join/partition_reach.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "nearwise/exact.h"
#include "oracle/knn.h"
#include "plan/join/partition_members.h"
#include "support/problems.h"
#include "support/rows.h"

namespace nearwise::plan {
namespace {

using support::Kind;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::array distances = {Metric::sqeuclidean, Metric::euclidean, Metric::cosine};

// Vectors, every n-th of which is a centroid, next to means of two vectors.
struct Problem {
  Problem(Kind kind, std::size_t count, std::size_t dim, std::size_t partitions)
      : rows(support::generate(kind, count, dim, 5 + dim), ElementType::f32), centroids(partitions, dim) {
    const auto value = [&](std::size_t row, std::size_t i) {
      return reinterpret_cast<const float*>(rows.view().row(row))[i];
    };
    for (std::size_t partition = 0; partition < partitions; ++partition)
      for (std::size_t i = 0; i < dim; ++i) {
        const float first = value(partition * (count / partitions), i);
        const float second = value((partition * 7 + 1) % count, i);
        centroids(partition, i) = partition % 2 == 0 ? first : first / 2 + second / 2;
      }
    for (std::size_t partition = 0; partition < partitions; ++partition)  // as of join_centroids()
      if (std::ranges::all_of(centroids.row(partition), [](float each) { return each == 0; }))
        centroids(partition, 0) = 1;
  }

  support::Rows rows;
  Matrix<float> centroids;
};

// Reported distances by definition, [left, right].
std::vector<std::vector<float>> distances_between(Metric metric, const RowsView& left,
                                                  const RowsView& right) {
  const std::size_t dim = left.dim();
  const std::vector<double> left_values = oracle::to_doubles(left);
  const std::vector<double> right_values = oracle::to_doubles(right);
  std::vector<std::vector<float>> all(left.rows());
  for (std::size_t i = 0; i < left.rows(); ++i)
    for (std::size_t j = 0; j < right.rows(); ++j)
      all[i].push_back(oracle::reported(metric, {left_values.data() + i * dim, dim},
                                        {right_values.data() + j * dim, dim}));
  return all;
}

std::size_t home_of(const std::vector<float>& to_centroids) {
  return static_cast<std::size_t>(std::ranges::min_element(to_centroids) - to_centroids.begin());
}

TEST(PartitionReach, NoPairIsBeyondIt) {
  std::size_t across = 0;
  std::size_t excluded = 0;
  for (const Kind kind : support::every_kind)
    for (const Metric metric : distances)
      for (const std::size_t dim : {1UL, 5UL}) {
        const Problem problem(kind, 48, dim, 9);
        const auto pairs = distances_between(metric, problem.rows, problem.rows);
        std::vector<float> thresholds;
        for (std::size_t i = 1; i < pairs.size(); ++i) thresholds.push_back(pairs[i][i / 2]);
        std::ranges::sort(thresholds);
        for (const std::size_t rank : {0UL, 2UL, 8UL, 24UL, 46UL}) {
          const float threshold = thresholds[rank];
          if (!std::isfinite(threshold)) continue;
          const PartitionReach reach(metric, threshold, dim);
          const auto found = distances_between(reach.metric(), problem.rows, problem.centroids.view());
          for (std::size_t x = 0; x < pairs.size(); ++x)
            for (std::size_t y = 0; y < pairs.size(); ++y) {
              const std::size_t home = home_of(found[x]);
              const std::size_t own = home_of(found[y]);
              if (home == own || x == y) continue;
              const float between = reach.between(problem.centroids.row(own), problem.centroids.row(home));
              const bool is_copied = found[y][home] <= reach.limit(found[y][own], infinity) &&
                                     found[y][home] <= reach.limit(found[y][own], between) &&
                                     reach.reaches(found[y][own], found[y][home], between);
              across += pairs[x][y] <= threshold ? 1 : 0;
              excluded += is_copied ? 0 : 1;
              ASSERT_TRUE(is_copied || !(pairs[x][y] <= threshold))
                  << fmt::format("{} {} dim {} threshold {}: rows {} and {}, partitions {} and {}",
                                 support::name(kind), name(metric), dim, threshold, x, y, home, own);
            }
        }
      }
  // Or the test is about nothing.
  EXPECT_GT(across, 100'000U);
  EXPECT_GT(excluded, 50'000U);
}

// Centroids at 0 and 2, their bisector at 1.
TEST(PartitionReach, IsThatOfTheBisector) {
  const float left = 0;
  const float right = 2;
  const auto is_copied = [&](Metric metric, float threshold, float value) {
    const PartitionReach reach(metric, threshold, 1);
    const float home = (right - value) * (right - value);
    const float other = value * value;
    const float between = reach.between({&right, 1}, {&left, 1});
    const bool is_within = reach.reaches(home, other, between);
    EXPECT_TRUE(!is_within || other <= std::min(reach.limit(home, infinity), reach.limit(home, between)));
    return is_within;
  };
  for (const float radius : {0.0F, 0.125F, 0.5F}) {
    for (const float beyond : {0.0F, 1e-7F, -1e-3F}) {
      EXPECT_TRUE(is_copied(Metric::sqeuclidean, radius * radius, 1 + radius + beyond)) << radius;
      EXPECT_TRUE(is_copied(Metric::euclidean, radius, 1 + radius + beyond)) << radius;
    }
    EXPECT_FALSE(is_copied(Metric::sqeuclidean, radius * radius, 1 + radius + 1e-4F)) << radius;
    EXPECT_FALSE(is_copied(Metric::euclidean, radius, 1 + radius + 1e-4F)) << radius;
  }
  // No distance is below 0.
  EXPECT_FALSE(is_copied(Metric::euclidean, -1, 1.001F));
}

// Unit vectors of the plane: centroids at 0 and 90 degrees, their bisector at 45. A threshold of 1 - cos(10
// degrees) is a chord of 2 sin(5 degrees), which leaves the bisector at an angle of asin(2 sin(5 degrees)).
TEST(PartitionReach, OfCosineIsThatOfNormalizedVectors) {
  const double degree = std::acos(-1.0) / 180;
  const PartitionReach reach(Metric::cosine, static_cast<float>(1 - std::cos(10 * degree)), 2);
  EXPECT_NEAR(reach.radius(), 2 * std::sin(5 * degree), 1e-6);
  const std::array<float, 2> at_0 = {3, 0};
  const std::array<float, 2> at_90 = {0, 0.25F};
  const float between = reach.between(at_0, at_90);
  EXPECT_NEAR(between, 2, 1e-5);
  const auto is_copied = [&](double angle) {
    return reach.reaches(static_cast<float>(1 - std::sin(angle)), static_cast<float>(1 - std::cos(angle)),
                         between);
  };
  const double reached = 45 * degree + std::asin(2 * std::sin(5 * degree));
  EXPECT_TRUE(is_copied(45 * degree));
  EXPECT_TRUE(is_copied(reached));
  EXPECT_FALSE(is_copied(reached + 0.01 * degree));
}

TEST(PartitionReach, InfiniteDistancesReachEverything) {
  const PartitionReach reach(Metric::sqeuclidean, 1, 4);
  EXPECT_EQ(reach.limit(infinity, 1), infinity);
  EXPECT_TRUE(reach.reaches(infinity, infinity, 1));
  EXPECT_TRUE(reach.reaches(3e38F, infinity, 1e38F));
  EXPECT_FALSE(reach.reaches(1, infinity, 1e38F));
}

// Against every partition, with lists of neighbours that are too short at first.
TEST(MemberSearch, FindsWhatTheBoundSaysInAnyPieces) {
  for (const Metric metric : distances) {
    const Problem problem(Kind::normal, 300, 3, 90);
    const auto pairs = distances_between(metric, problem.rows.view().slice(0, 1), problem.rows);
    std::vector<float> nearest = pairs[0];
    std::ranges::sort(nearest);
    for (const std::size_t rank : {2UL, 40UL, 299UL}) {
      const PartitionReach reach(metric, nearest[rank], 3);
      const auto found = distances_between(reach.metric(), problem.rows, problem.centroids.view());
      const auto between = [&](std::size_t home, std::size_t other) {
        return reach.between(problem.centroids.row(home), problem.centroids.row(other));
      };
      Matrix<float> table(90, 90);
      for (std::size_t home = 0; home < 90; ++home)
        for (std::size_t other = 0; other < home; ++other) table(home, other) = between(home, other);
      std::vector<PartitionMember> expected;
      for (std::size_t row = 0; row < found.size(); ++row) {
        const std::size_t home = home_of(found[row]);
        expected.emplace_back(home, false, static_cast<std::uint32_t>(1000 + row));
        for (std::size_t other = 0; other < home; ++other)
          if (reach.reaches(found[row][home], found[row][other], between(home, other)))
            expected.emplace_back(other, true, static_cast<std::uint32_t>(1000 + row));
      }
      std::ranges::sort(expected);
      for (const std::size_t piece : {1UL, 500UL, 100'000UL}) {
        const Context context = Context::cpu({.threads = piece == 500 ? 2 : 1});
        std::vector<PartitionMember> members;
        MemberSearch(context, problem.centroids, reach, piece,
                     piece == 1 ? MatrixView<const float>() : table.view())
            .search(problem.rows, 1000, [&](std::span<const PartitionMember> some) {
              members.insert(members.end(), some.begin(), some.end());
            });
        std::ranges::sort(members);
        EXPECT_TRUE(members == expected) << name(metric) << " " << rank << " in pieces of " << piece;
      }
    }
  }
}

// Zero vectors are at the same distance from every partition and at home in the first one, before which there
// is none. Neighbours among all 1024 would take 41 MB.
TEST(MemberSearch, ZeroVectorsAreComparedOnce) {
  constexpr std::size_t count = 2000;
  const Problem problem(Kind::normal, 2048, 3, 1024);
  Matrix<float> zeros(count, 3);
  std::ranges::fill(std::span(zeros.data(), count * 3), 0.0F);
  const PartitionReach reach(Metric::cosine, 0.01F, 3);
  const Context context = Context::cpu({.threads = 1});
  std::size_t members = 0;
  MemberSearch(context, problem.centroids, reach, std::size_t{1} << 22)
      .search(zeros, 0, [&](std::span<const PartitionMember> some) {
        for (const PartitionMember& member : some) {
          EXPECT_EQ(member.place(), 0U);
          ++members;
        }
      });
  EXPECT_EQ(members, count);
  EXPECT_LT(context.memory_peak(), count * 1024 * (sizeof(Id) + sizeof(float) + sizeof(PartitionMember)) / 2);
}

}  // namespace
}  // namespace nearwise::plan
