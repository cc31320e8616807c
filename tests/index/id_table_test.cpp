#include "index/id_table.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace nearwise::index {
namespace {

// Random inserts and erases, compared with std::map.
void compare_with_map(Id step, Id range) {
  std::mt19937_64 random(static_cast<std::uint64_t>(step + range));
  IdTable table(std::make_shared<MemoryBudget>());
  std::map<Id, std::uint32_t> expected;
  for (int round = 0; round < 20; ++round) {
    table.reserve(300, range * step);
    for (int i = 0; i < 300; ++i) {
      const Id id = static_cast<Id>(random() % static_cast<std::uint64_t>(range)) * step;
      const auto list = static_cast<std::uint32_t>(random() % 100);
      EXPECT_EQ(table.insert(id, list), expected.emplace(id, list).second);
    }
    for (int i = 0; i < 200; ++i) {
      const Id id = static_cast<Id>(random() % static_cast<std::uint64_t>(range)) * step;
      EXPECT_EQ(table.erase(id), expected.erase(id) != 0);
    }
    ASSERT_EQ(table.size(), expected.size());
    for (Id id = 0; id < range; ++id) {
      const auto found = table.find(id * step);
      const auto there = expected.find(id * step);
      ASSERT_EQ(found.has_value(), there != expected.end()) << id * step;
      ASSERT_EQ(found.value_or(0), there == expected.end() ? 0 : there->second);
    }
    EXPECT_FALSE(table.find(range * step));
    EXPECT_FALSE(table.find(-1));
  }
}

TEST(IdTable, AgreesWithAMapOnDenseIds) { compare_with_map(1, 2000); }
TEST(IdTable, AgreesWithAMapOnSparseIds) { compare_with_map(1'000'003, 2000); }
TEST(IdTable, AgreesWithAMapOnHugeIds) { compare_with_map(std::int64_t{1} << 50, 4000); }

TEST(IdTable, GoesOnWhenDenseIdsAreFollowedBySparseOnes) {
  IdTable table(std::make_shared<MemoryBudget>());
  table.reserve(1000, 1000);
  for (Id id = 0; id < 1000; ++id) table.insert(id, static_cast<std::uint32_t>(id % 7));
  table.reserve(1, (Id{1} << 60) + 1);
  EXPECT_TRUE(table.insert(Id{1} << 60, 5));
  for (Id id = 0; id < 1000; ++id) ASSERT_EQ(table.find(id), static_cast<std::uint32_t>(id % 7));
  EXPECT_EQ(table.find(Id{1} << 60), 5U);
  EXPECT_FALSE(table.insert(3, 1));
}

TEST(IdTable, ChargesItsMemory) {
  const auto budget = std::make_shared<MemoryBudget>();
  {
    IdTable table(budget);
    table.reserve(1000, 1000);
    EXPECT_GE(budget->used(), 4000U);
    EXPECT_LE(budget->used(), 8000U);
    table.reserve(1000, Id{1} << 40);
    EXPECT_GE(budget->used(), 12'000U);
  }
  EXPECT_EQ(budget->used(), 0U);
}

}  // namespace
}  // namespace nearwise::index
