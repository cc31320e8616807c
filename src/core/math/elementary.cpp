#include "core/math/elementary.h"

#include <cmath>

namespace nearwise {
namespace {

// An unevaluated sum of two doubles; `low` is at most half a unit in the last place of `high`.
struct Pair {
  double high;
  double low;
};

// x split into halves of 26 bits, whose products are exact (Veltkamp).
Pair halves(double x) {
  constexpr double splitter = 0x1p27 + 1;
  const double scaled = splitter * x;
  const double high = scaled - (scaled - x);
  return {high, x - high};
}

// a * b without rounding (Dekker).
Pair product(double a, double b) {
  const Pair x = halves(a);
  const Pair y = halves(b);
  const double rounded = a * b;
  return {rounded, ((x.high * y.high - rounded) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

// a + b without rounding, |a| >= |b| or a = 0.
Pair sum(double a, double b) {
  const double rounded = a + b;
  return {rounded, b - (rounded - a)};
}

// 1/3 + z/5 + z^2/7 + ...: (atanh(s) / s - 1) / z with z = s^2, |s| <= 0.172.
double inverse_tangent_series(double z) {
  double series = 0;
  for (int divisor = 27; divisor >= 3; divisor -= 2) series = series * z + 1.0 / divisor;
  return series;
}

// The angle of a part of a turn, |turns| <= 1/8.
Pair angle(double turns) {
  constexpr Pair tau = {0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};
  const Pair rounded = product(tau.high, turns);
  return {rounded.high, rounded.low + tau.low * turns};
}

double cosine(Pair x) {
  const Pair square = product(x.high, x.high);
  const double z = square.high;
  // 1/4! - z/6! + z^2/8! - ...
  double series = 0;
  for (int k = 18; k >= 4; k -= 2) series = 1 - z * series / ((k + 1) * (k + 2));
  const Pair start = sum(1, -z / 2);
  return start.high + (start.low - square.low / 2 - x.high * x.low + z * z / 24 * series);
}

double sine(Pair x) {
  const double z = x.high * x.high;
  // 1/3! - z/5! + z^2/7! - ...
  double series = 0;
  for (int k = 17; k >= 3; k -= 2) series = 1 - z * series / ((k + 1) * (k + 2));
  return x.high + (x.low - x.high * z / 6 * series);
}

}  // namespace

double natural_logarithm(double x) noexcept {
  // x = 2^exponent * m with m near 1; log(m) = 2 atanh(s) with s = (m - 1) / (m + 1).
  constexpr Pair log_2 = {0x1.62e42fefa3p-1,
                          0x1.3de6af278ece6p-42};  // 41 bits of the first: multiples are exact
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) {  // sqrt(1/2)
    m *= 2;
    --exponent;
  }
  const double above = m - 1;
  const Pair divisor = m < 1 ? sum(1, m) : sum(m, 1);
  const double s = above / divisor.high;
  const Pair back = product(s, divisor.high);
  const double s_low = (above - back.high - back.low - s * divisor.low) / divisor.high;
  const double z = s * s;
  const Pair start = sum(exponent * log_2.high, 2 * s);
  return start.high +
         (start.low + (exponent * log_2.low + 2 * s_low + 2 * s * z * inverse_tangent_series(z)));
}

double cosine_of_turns(double turns) noexcept {
  const double quarters = std::floor(4 * turns + 0.5);
  const Pair x = angle(turns - quarters / 4);  // the difference is exact
  switch (static_cast<int>(quarters) % 4) {
    case 0: return cosine(x);
    case 1: return -sine(x);
    case 2: return -cosine(x);
    default: return sine(x);
  }
}

}  // namespace nearwise
