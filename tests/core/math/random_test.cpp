// Known answers, and statistics with fixed seeds: these tests give the same verdict every time.
#include "core/math/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace nearwise {
namespace {

// The vectors for philox4x32-10 of the file kat_vectors in Random123, the authors' implementation.
TEST(Philox, GivesTheAuthorsKnownAnswers) {
  constexpr std::uint32_t ones = 0xFFFFFFFF;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxBlock{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}),
            (PhiloxBlock{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(Random, IndexStreamAndSeedAreCounterAndKey) {
  const Random random(0x299F31D0A4093822, 0x0370734413198A2E);
  EXPECT_EQ(random.bits(0x85A308D3243F6A88), 0x94FDCCEBD16CFE09U);
}

TEST(Random, IsAPureFunctionOfSeedStreamAndIndex) {
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : {0U, 1U, 2U})
    for (const std::uint64_t stream : {0U, 1U, 2U})
      for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
        EXPECT_EQ(Random(seed, stream).bits(index), Random(seed, stream).bits(index));
        seen.insert(Random(seed, stream).bits(index));
      }
  EXPECT_EQ(seen.size(), 27U);  // swapping seed, stream and index gives other numbers
}

// With c cells the statistic has mean c - 1 and variance 2 (c - 1); six standard deviations never come by
// chance.
void expect_uniform(const std::vector<std::uint64_t>& counts) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const std::uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    chi_square += difference * difference / expected;
  }
  const double freedom = static_cast<double>(counts.size()) - 1;
  EXPECT_NEAR(chi_square, freedom, 6 * std::sqrt(2 * freedom));
}

TEST(Random, BelowIsUniformOverItsRange) {
  const Random random(11);
  for (const std::uint64_t bound : {2U, 3U, 7U, 10U, 1000U}) {
    std::vector<std::uint64_t> counts(bound);
    for (std::uint64_t index = 0; index < 100 * bound + 50'000; ++index)
      ++counts.at(random.below(index, bound));
    expect_uniform(counts);
  }
}

TEST(Random, BelowStaysInRangeForTheSmallestAndTheLargestBounds) {
  const Random random(12);
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (std::uint64_t index = 0; index < 1000; ++index) {
    EXPECT_EQ(random.below(index, 1), 0U);
    EXPECT_LT(random.below(index, most), most);
    EXPECT_LT(random.below(index, (std::uint64_t{1} << 63) + 1), (std::uint64_t{1} << 63) + 1);
  }
}

TEST(Random, EveryBitIsSetHalfOfTheTime) {
  const Random random(13);
  constexpr std::uint64_t draws = 40'000;
  std::array<std::uint64_t, 64> set{};
  for (std::uint64_t index = 0; index < draws; ++index) {
    const std::uint64_t bits = random.bits(index);
    for (std::size_t bit = 0; bit < 64; ++bit) set[bit] += bits >> bit & 1;
  }
  for (const std::uint64_t count : set)
    EXPECT_NEAR(static_cast<double>(count), draws / 2.0, 6 * std::sqrt(draws / 4.0));
}

// The largest distance of the empirical distribution from the true one, times sqrt(n): above 2.5 with a
// probability below 1e-5 (Kolmogorov).
template <typename Distribution>
double kolmogorov_statistic(std::vector<double> sample, Distribution distribution) {
  std::sort(sample.begin(), sample.end());
  const double count = static_cast<double>(sample.size());
  double largest = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double probability = distribution(sample[i]);
    largest = std::max({largest, probability - static_cast<double>(i) / count,
                        (static_cast<double>(i) + 1) / count - probability});
  }
  return largest * std::sqrt(count);
}

TEST(Random, UniformIsUniformInTheHalfOpenInterval) {
  const Random random(14);
  std::vector<double> sample;
  for (std::uint64_t index = 0; index < 100'000; ++index) {
    sample.push_back(random.uniform(index));
    ASSERT_GE(sample.back(), 0.0);
    ASSERT_LT(sample.back(), 1.0);
  }
  EXPECT_LT(kolmogorov_statistic(sample, [](double x) { return x; }), 2.5);
}

TEST(Random, NormalHasTheMomentsAndTheDistributionOfANormal) {
  const Random random(15);
  constexpr int count = 200'000;
  std::vector<double> sample;
  std::array<double, 5> moment{};
  for (std::uint64_t index = 0; index < count; ++index) {
    const double value = random.normal(index);
    ASSERT_TRUE(std::isfinite(value));
    sample.push_back(value);
    for (int power = 1; power <= 4; ++power)
      moment[static_cast<std::size_t>(power)] += std::pow(value, power) / count;
  }
  // Standard errors of the raw moments 0, 1, 0, 3 of n numbers: sqrt(1/n), sqrt(2/n), sqrt(15/n), sqrt(96/n).
  EXPECT_NEAR(moment[1], 0, 6 * std::sqrt(1.0 / count));
  EXPECT_NEAR(moment[2], 1, 6 * std::sqrt(2.0 / count));
  EXPECT_NEAR(moment[3], 0, 6 * std::sqrt(15.0 / count));
  EXPECT_NEAR(moment[4], 3, 6 * std::sqrt(96.0 / count));
  const auto normal_distribution = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  EXPECT_LT(kolmogorov_statistic(sample, normal_distribution), 2.5);
}

TEST(Random, NeighbouringIndexesAndStreamsAreUncorrelated) {
  constexpr int count = 100'000;
  double by_index = 0;
  double by_stream = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    by_index += Random(16).normal(index) * Random(16).normal(index + 1) / count;
    by_stream += Random(16, 1).normal(index) * Random(16, 2).normal(index) / count;
  }
  EXPECT_NEAR(by_index, 0, 6 * std::sqrt(1.0 / count));
  EXPECT_NEAR(by_stream, 0, 6 * std::sqrt(1.0 / count));
}

}  // namespace
}  // namespace nearwise
