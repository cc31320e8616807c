// With how many cells two rows meet, against sets.
#include "plan/partition/choose_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/random.h"

namespace nearwise::plan {
namespace {

std::size_t slow_meeting(const std::vector<Id>& cells, const std::vector<Id>& others) {
  for (std::size_t overlap = 1; overlap <= cells.size(); ++overlap) {
    const std::set<Id> own(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(overlap));
    for (std::size_t i = 0; i < overlap; ++i)
      if (others[i] != no_id && own.contains(others[i])) return overlap;
  }
  return no_meeting;
}

std::vector<Id> some_cells(const Random& random, std::uint64_t number, std::size_t overlap) {
  std::vector<Id> cells;
  for (std::uint64_t i = 0; cells.size() < overlap; ++i) {
    const auto cell = static_cast<Id>(random.below(number * 1000 + i, 20));
    if (std::ranges::find(cells, cell) == cells.end()) cells.push_back(cell);
  }
  // Rows may be in fewer, but in one.
  const std::size_t own = 1 + random.below(number * 1000 + 999, overlap);
  std::fill(cells.begin() + static_cast<std::ptrdiff_t>(own), cells.end(), no_id);
  return cells;
}

TEST(ChooseRule, MeetingsAreThoseOfSets) {
  const Random random(3);
  std::set<std::size_t> seen;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::size_t overlap = 1 + i % 8;
    const auto cells = some_cells(random, 2 * i, overlap);
    const auto others = some_cells(random, 2 * i + 1, overlap);
    const std::size_t expected = slow_meeting(cells, others);
    ASSERT_EQ(meeting_overlap(cells, others), expected) << i;
    ASSERT_EQ(meeting_overlap(others, cells), expected) << i;
    if (overlap == 8) seen.insert(expected);
  }
  EXPECT_EQ(seen.size(), 9U);
}

}  // namespace
}  // namespace nearwise::plan
