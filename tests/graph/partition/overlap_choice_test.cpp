// The overlap at which two rows share a partition, against sets; the choice of a rule by its predicted
// recall.
#include "graph/partition/overlap_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "core/math/random.h"
#include "support/problems.h"
#include "support/rows.h"

namespace nearwise::graph {
namespace {

std::size_t slow_overlap(const std::vector<Id>& partitions, const std::vector<Id>& others) {
  for (std::size_t overlap = 1; overlap <= partitions.size(); ++overlap) {
    const std::set<Id> own(partitions.begin(), partitions.begin() + static_cast<std::ptrdiff_t>(overlap));
    for (std::size_t i = 0; i < overlap; ++i)
      if (others[i] != no_id && own.contains(others[i])) return overlap;
  }
  return no_overlap;
}

std::vector<Id> some_partitions(const Random& random, std::uint64_t number, std::size_t overlap) {
  std::vector<Id> partitions;
  for (std::uint64_t i = 0; partitions.size() < overlap; ++i) {
    const auto partition = static_cast<Id>(random.below(number * 1000 + i, 20));
    if (std::ranges::find(partitions, partition) == partitions.end()) partitions.push_back(partition);
  }
  // Some rows are in fewer partitions, at least in one.
  const std::size_t own = 1 + random.below(number * 1000 + 999, overlap);
  std::fill(partitions.begin() + static_cast<std::ptrdiff_t>(own), partitions.end(), no_id);
  return partitions;
}

TEST(SharedOverlap, IsThatOfSets) {
  const Random random(3);
  std::set<std::size_t> seen;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::size_t overlap = 1 + i % 8;
    const auto partitions = some_partitions(random, 2 * i, overlap);
    const auto others = some_partitions(random, 2 * i + 1, overlap);
    const std::size_t expected = slow_overlap(partitions, others);
    ASSERT_EQ(shared_overlap<Id>(partitions, others), expected) << i;
    ASSERT_EQ(shared_overlap<Id>(others, partitions), expected) << i;
    if (overlap == 8) seen.insert(expected);
  }
  EXPECT_EQ(seen.size(), 9U);
}

TEST(OverlapRule, CountsPartitionsWithinReach) {
  const std::vector<float> distances = {1, 1.2F, 1.5F, 4};
  EXPECT_EQ((OverlapRule{.overlap = 4}.count(Metric::sqeuclidean, distances)), 4U);
  EXPECT_EQ((OverlapRule{.overlap = 4, .reach = 1.5}.count(Metric::sqeuclidean, distances)), 3U);
  EXPECT_EQ((OverlapRule{.overlap = 2, .reach = 1.5}.count(Metric::cosine, distances)), 2U);
  EXPECT_EQ((OverlapRule{.overlap = 4, .reach = 1}.count(Metric::sqeuclidean, distances)), 1U);
  EXPECT_EQ((OverlapRule{.overlap = 9}.count(Metric::sqeuclidean, distances)), 4U);
  EXPECT_EQ((OverlapRule{.overlap = 4, .reach = 1}.count(Metric::inner_product, distances)), 4U);
  // A row at its centroid: only partitions at the same place are within reach.
  EXPECT_EQ((OverlapRule{.overlap = 3, .reach = 2}.count(Metric::sqeuclidean, std::vector<float>{0, 0, 1})),
            2U);
}

// Four rows of two neighbours each, all of them sampled: the predicted recall is exact.
class OverlapChoiceOfFourRows : public ::testing::Test {
 protected:
  static RecallSample make_sample(const RowsView& rows) {
    return {
        Context::cpu({.threads = 1}), rows, 2,
        Metric::sqeuclidean,          4,    {.nearest = {1, 2, 0, 2, 0, 1, 0, 1}, .limits = {1, 1, 1, 1}}};
  }
  // overlaps: of the eight neighbours; count: partitions of each row.
  static void set(OverlapChoice& choice, std::size_t reach, const std::vector<std::size_t>& overlaps,
                  std::size_t count) {
    for (std::size_t i = 0; i < 8; ++i) choice.set_overlap(reach, i / 2, i % 2, overlaps[i]);
    for (std::size_t row = 0; row < 4; ++row) choice.set_partitions(reach, row, count);
  }

  const support::Rows rows_{support::generate(support::Kind::normal, 4, 3, 1), ElementType::f32};
  const RecallSample sample_ = make_sample(rows_);
};

TEST_F(OverlapChoiceOfFourRows, SmallestOverlapThatReachesTheTarget) {
  const std::optional<double> any_reach;
  OverlapChoice choice(sample_, 3, {&any_reach, 1});
  set(choice, 0, {0, 1, 1, 2, 2, 3, 3, no_overlap}, 3);
  for (const auto& [target, overlap, recall] :
       {std::tuple(0.375, 1U, 0.375), std::tuple(0.376, 2U, 0.625), std::tuple(0.87, 3U, 0.875)}) {
    const ChosenOverlap chosen = choice.choose(target);
    EXPECT_TRUE(chosen.is_enough) << target;
    EXPECT_EQ(chosen.rule.overlap, overlap) << target;
    EXPECT_EQ(chosen.predicted_recall, recall) << target;
  }
  const ChosenOverlap chosen = choice.choose(0.9);
  EXPECT_FALSE(chosen.is_enough);
  EXPECT_EQ(chosen.rule.overlap, 3U);
  EXPECT_EQ(chosen.predicted_recall, 0.875);
}

TEST_F(OverlapChoiceOfFourRows, ReachWithTheFewestPartitions) {
  const std::vector<std::optional<double>> reaches = {1.5, 2.0, 3.0};
  OverlapChoice choice(sample_, 4, reaches);
  set(choice, 0, {1, 1, 1, 1, 1, 1, no_overlap, no_overlap}, 1);
  set(choice, 1, {1, 1, 1, 1, 1, 1, 3, 3}, 4);
  set(choice, 2, {1, 1, 1, 1, 1, 1, 2, 2}, 4);
  EXPECT_EQ(choice.choose(0.7).rule.reach, 1.5);
  const ChosenOverlap all = choice.choose(0.99);
  EXPECT_EQ(all.rule.reach, 3.0);
  EXPECT_EQ(all.rule.overlap, 2U);
  EXPECT_TRUE(all.is_enough);
}

}  // namespace
}  // namespace nearwise::graph
