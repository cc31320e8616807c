// With how many partitions two rows meet, against sets.
#include "plan/partition/choose_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/random.h"

namespace nearwise::plan {
namespace {

std::size_t slow_meeting(const std::vector<Id>& partitions, const std::vector<Id>& others) {
  for (std::size_t overlap = 1; overlap <= partitions.size(); ++overlap) {
    const std::set<Id> own(partitions.begin(), partitions.begin() + static_cast<std::ptrdiff_t>(overlap));
    for (std::size_t i = 0; i < overlap; ++i)
      if (others[i] != no_id && own.contains(others[i])) return overlap;
  }
  return no_shared_partition;
}

std::vector<Id> some_partitions(const Random& random, std::uint64_t number, std::size_t overlap) {
  std::vector<Id> partitions;
  for (std::uint64_t i = 0; partitions.size() < overlap; ++i) {
    const auto partition = static_cast<Id>(random.below(number * 1000 + i, 20));
    if (std::ranges::find(partitions, partition) == partitions.end()) partitions.push_back(partition);
  }
  // Rows may be in fewer, but in one.
  const std::size_t own = 1 + random.below(number * 1000 + 999, overlap);
  std::fill(partitions.begin() + static_cast<std::ptrdiff_t>(own), partitions.end(), no_id);
  return partitions;
}

TEST(ChooseRule, MeetingsAreThoseOfSets) {
  const Random random(3);
  std::set<std::size_t> seen;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::size_t overlap = 1 + i % 8;
    const auto partitions = some_partitions(random, 2 * i, overlap);
    const auto others = some_partitions(random, 2 * i + 1, overlap);
    const std::size_t expected = slow_meeting(partitions, others);
    ASSERT_EQ(shared_overlap(partitions, others), expected) << i;
    ASSERT_EQ(shared_overlap(others, partitions), expected) << i;
    if (overlap == 8) seen.insert(expected);
  }
  EXPECT_EQ(seen.size(), 9U);
}

}  // namespace
}  // namespace nearwise::plan
