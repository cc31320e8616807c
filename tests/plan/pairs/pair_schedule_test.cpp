// The tournament of parts: everybody meets everybody once, and nobody two at a time.
#include "plan/pairs/pair_schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace nearwise::plan {
namespace {

TEST(PairSchedule, EverybodyMeetsEverybodyOnce) {
  for (std::size_t parts = 1; parts <= 33; ++parts) {
    SCOPED_TRACE(parts);
    const PairSchedule schedule(parts);
    EXPECT_EQ(schedule.rounds(), parts == 1 ? 0 : parts - 1 + parts % 2);
    std::set<std::pair<std::size_t, std::size_t>> met;
    std::vector<std::optional<Pairing>> last(parts);
    for (std::size_t round = 0; round < schedule.rounds(); ++round) {
      std::set<std::size_t> busy;
      for (std::size_t part = 0; part < parts; ++part) EXPECT_EQ(schedule.before(part, round), last[part]);
      EXPECT_EQ(schedule.pairs(round).size(), parts / 2);
      for (const Pairing& pairing : schedule.pairs(round)) {
        EXPECT_LT(pairing.left, pairing.right);
        EXPECT_LT(pairing.right, parts);
        EXPECT_TRUE(met.emplace(pairing.left, pairing.right).second);
        EXPECT_TRUE(busy.insert(pairing.left).second);
        EXPECT_TRUE(busy.insert(pairing.right).second);
        last[pairing.left] = last[pairing.right] = pairing;
      }
    }
    EXPECT_EQ(met.size(), parts * (parts - 1) / 2);
    for (std::size_t part = 0; part < parts; ++part)
      EXPECT_EQ(schedule.before(part, schedule.rounds()), last[part]);
  }
}

}  // namespace
}  // namespace nearwise::plan
