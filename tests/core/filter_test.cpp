// Filters against sets of ids.
#include "core/filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/error_of.h"
#include "support/filter_cases.h"

namespace nearwise {
namespace {

using support::FilterCase;
using support::FilterKind;

constexpr std::size_t ids = 300;
constexpr std::size_t queries = 3;

void expect_allows(const Filter& filter, const support::Allows& allows, std::string_view what) {
  for (std::size_t query = 0; query < queries; ++query)
    for (Id id = 0; id < static_cast<Id>(ids); ++id)
      ASSERT_EQ(filter.allows(id, query), allows(query, id)) << what << ": query " << query << ", id " << id;
}

TEST(Filter, AllowsWhatItsKindSays) {
  for (const FilterKind kind : support::every_filter_kind)
    for (const double density : {0.0, 0.02, 0.5, 1.0}) {
      const FilterCase made = make_filter(kind, ids, queries, density, 3);
      expect_allows(made.filter, made.allows, name(kind));
    }
}

TEST(Filter, BothMustAllow) {
  for (const FilterKind left : support::every_filter_kind)
    for (const FilterKind right : support::every_filter_kind) {
      const FilterCase one = make_filter(left, ids, queries, 0.3, 5);
      const FilterCase other = make_filter(right, ids, queries, 0.6, 6);
      expect_allows(
          one.filter & other.filter,
          [&](std::size_t query, Id id) { return one.allows(query, id) && other.allows(query, id); },
          name(left));
      expect_allows(one.filter & Filter(), one.allows, "with all");
      expect_allows(Filter() & one.filter, one.allows, "all with");
    }
}

TEST(Filter, ListsOfFarIdsTakeNoBits) {
  const std::vector<Id> far = {Id{1} << 60, 5, Id{1} << 40};
  const Filter filter = Filter::allow(far);
  for (const Id id : far) EXPECT_TRUE(filter.allows(id));
  EXPECT_FALSE(filter.allows(6));
  EXPECT_EQ(FilterInternals::listed(filter).size(), 3U);
  const Filter denied = Filter::deny(far);
  EXPECT_FALSE(denied.allows(Id{1} << 40));
  EXPECT_TRUE(denied.allows(6));
}

TEST(Filter, ListsOfFarIdsCombineWithMasks) {
  const std::vector<Id> far = {Id{1} << 60, 5, 64, 65, 130, 131, 299};
  const FilterCase mask = make_filter(FilterKind::mask, ids, queries, 0.5, 11);
  const auto is_far = [&](Id id) { return std::ranges::find(far, id) != far.end(); };
  const auto both_allow = [&](std::size_t query, Id id) { return mask.allows(query, id) && is_far(id); };
  const auto mask_only = [&](std::size_t query, Id id) { return mask.allows(query, id) && !is_far(id); };
  expect_allows(mask.filter & Filter::allow(far), both_allow, "mask, allow");
  expect_allows(Filter::allow(far) & mask.filter, both_allow, "allow, mask");
  expect_allows(mask.filter & Filter::deny(far), mask_only, "mask, deny");
  expect_allows(Filter::deny(far) & mask.filter, mask_only, "deny, mask");
}

TEST(Filter, MasksOfAnyLength) {
  for (std::size_t length = 0; length < 140; ++length) {
    std::vector<std::uint8_t> mask(length);
    for (std::size_t i = 0; i < length; ++i)
      mask[i] = static_cast<std::uint8_t>(i * i * 37 % 5 < 2 ? 0 : i % 3 == 0 ? 128 : i);
    const Filter filter = Filter::mask(mask);
    for (std::size_t i = 0; i < 200; ++i)
      ASSERT_EQ(filter.allows(static_cast<Id>(i)), i < length && mask[i] != 0) << i << " of " << length;
  }
}

TEST(Filter, PartsSpeakOfTheirOwnIdsAndQueries) {
  for (const FilterKind kind : support::every_filter_kind) {
    const FilterCase made = make_filter(kind, ids, queries, 0.4, 8);
    const Filter part = made.filter.from_id(37);
    for (Id id = 0; id < 200; ++id) EXPECT_EQ(part.allows(id, 1), made.allows(1, id + 37)) << name(kind);
    if (!made.filter.queries()) continue;
    const Filter last = made.filter.from_query(2, 1);
    EXPECT_EQ(last.queries(), 1U);
    for (Id id = 0; id < 200; ++id) EXPECT_EQ(last.allows(id, 0), made.allows(2, id)) << name(kind);
  }
}

TEST(Filter, CountsAndBitsAgree) {
  for (const FilterKind kind :
       {FilterKind::mask, FilterKind::short_mask, FilterKind::allow, FilterKind::deny})
    for (const std::size_t first : {0UL, 1UL, 64UL, 130UL})
      for (const std::size_t count : {0UL, 1UL, 63UL, 64UL, 65UL, 170UL}) {
        const FilterCase made = make_filter(kind, ids, queries, 0.4, 9);
        const Filter part = made.filter.from_id(static_cast<Id>(first));
        std::vector<std::uint64_t> words(count / 64 + 2, ~std::uint64_t{0});
        FilterInternals::write_bits(part, count, words.data());
        const RowBits bits = {words.data(), 0};
        std::size_t allowed = 0;
        for (std::size_t i = 0; i < words.size() * 64; ++i) {
          const bool expected = i < count && made.allows(0, static_cast<Id>(first + i));
          ASSERT_EQ(bits.contains(i), expected) << name(kind) << " " << first << " " << i;
          allowed += expected ? 1 : 0;
        }
        EXPECT_EQ(FilterInternals::count(part, count), allowed) << name(kind);
        for (std::size_t i = 0; i + 16 <= count; ++i)
          for (std::size_t bit = 0; bit < 16; ++bit)
            ASSERT_EQ((bits.sixteen(i) >> bit & 1U) != 0, bits.contains(i + bit));
      }
}

TEST(Filter, RefusesWhatItCannotMean) {
  const std::vector<Id> negative = {3, -1};
  EXPECT_EQ(support::error_of([&] { Filter::allow(negative); }).code(), ErrorCode::invalid_argument);
  const std::vector<Id> some = {1, 2, 3};
  for (const std::vector<std::size_t>& offsets : {std::vector<std::size_t>{}, {0, 2}, {1, 3}, {0, 3, 2, 3}})
    EXPECT_EQ(support::error_of([&] { Filter::deny_per_query(offsets, some); }).code(),
              ErrorCode::invalid_argument);
  const Filter two = Filter::deny_per_query(std::vector<std::size_t>{0, 1, 3}, some);
  const Filter three = Filter::deny_per_query(std::vector<std::size_t>{0, 1, 2, 3}, some);
  EXPECT_EQ(support::error_of([&] { static_cast<void>(two & three); }).code(), ErrorCode::invalid_argument);
}

TEST(Filter, DerivesOncePerKey) {
  const Filter filter = Filter::allow(std::vector<Id>{1});
  int made = 0;
  const auto derive = [&](std::uint64_t key) {
    return *FilterInternals::derive<int>(filter, key, [&] { return std::make_shared<const int>(++made); });
  };
  EXPECT_EQ(derive(5), 1);
  EXPECT_EQ(derive(5), 1);
  EXPECT_EQ(derive(6), 2);
  EXPECT_EQ(derive(5), 3);
}

}  // namespace
}  // namespace nearwise
