// Elementary functions against long double, whose 11 more bits tell the error in units in the last place.
#include "core/math/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "core/math/random.h"

namespace nearwise {
namespace {

double ulps(double found, long double expected) {
  int exponent = 0;
  std::frexp(static_cast<double>(expected), &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent, -1021) - 53);
  return static_cast<double>(std::abs(found - expected) / unit);
}

// The angle is reduced exactly first: 2 pi is not exact in long double either.
long double exact_cosine_of_turns(double turns) {
  const long double quarters = std::floor(4 * static_cast<long double>(turns) + 0.5L);
  const long double angle = 2 * std::numbers::pi_v<long double> * (turns - quarters / 4);
  switch (static_cast<int>(quarters) % 4) {
    case 0: return std::cos(angle);
    case 1: return -std::sin(angle);
    case 2: return -std::cos(angle);
    default: return std::sin(angle);
  }
}

TEST(NaturalLogarithm, IsWithinThreeFifthsOfAUnit) {
  const Random random(1);
  double largest = 0;
  const auto check = [&](double x) {
    largest = std::max(largest, ulps(natural_logarithm(x), std::log(static_cast<long double>(x))));
  };
  for (std::uint64_t i = 0; i < 300'000; ++i) {
    const double uniform = random.uniform(2 * i) + 0x1p-54;
    const int power = static_cast<int>(random.below(2 * i + 1, 2000)) - 1000;
    check(uniform);
    check(std::ldexp(1 + uniform, power));
    check(1 + std::ldexp(uniform - 0.5, power % 52));  // near 1, where the logarithm is small
  }
  // Where the range of m begins and ends, powers of two, the least and the largest numbers.
  for (double x = 0x1p-1074; x < 0x1p+1023; x *= 2)
    for (const double m : {1.0, std::numbers::sqrt2, std::numbers::sqrt2 / 2}) {
      check(x * m);
      check(std::nextafter(x * m, 0x1p+1023));
    }
  check(std::numeric_limits<double>::max());
  EXPECT_LT(largest, 0.6);
  EXPECT_EQ(natural_logarithm(1), 0);
}

TEST(CosineOfTurns, IsWithinAUnit) {
  const Random random(2);
  double largest = 0;
  const auto check = [&](double turns) {
    const long double expected = exact_cosine_of_turns(turns);
    if (expected == 0)
      EXPECT_EQ(cosine_of_turns(turns), 0) << turns;
    else
      largest = std::max(largest, ulps(cosine_of_turns(turns), expected));
  };
  for (std::uint64_t i = 0; i < 500'000; ++i) check(random.uniform(i));
  // Near multiples of an eighth: zeros, extremes, and the ends of the range of the series.
  for (int eighth = 0; eighth <= 8; ++eighth)
    for (int power = -53; power < -3; ++power)
      for (const double sign : {-1.0, 0.0, 1.0})
        if (const double turns = eighth / 8.0 + sign * std::ldexp(1.0, power); turns >= 0 && turns <= 1)
          check(turns);
  EXPECT_LT(largest, 1);
  EXPECT_EQ(cosine_of_turns(0), 1);
  EXPECT_EQ(cosine_of_turns(0.5), -1);
  EXPECT_EQ(cosine_of_turns(1), 1);
}

// Recorded once; every compiler and CPU must give them.
TEST(Elementary, BitsAreFixed) {
  std::uint64_t hash = 0;
  const Random random(3);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const double uniform = random.uniform(i) + 0x1p-54;
    for (const double value : {natural_logarithm(uniform), cosine_of_turns(uniform)})
      hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * 0x100000001B3;
  }
  EXPECT_EQ(hash, 16631213439639566055U);
}

}  // namespace
}  // namespace nearwise
