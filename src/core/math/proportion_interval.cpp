#include "core/math/proportion_interval.h"

#include <algorithm>
#include <cmath>

namespace nearwise {

ProportionInterval proportion_interval(double mean, double variance, std::size_t count) {
  constexpr double z = 1.959963984540054;
  // Of numbers that are 0 or 1 the variance is mean * (1 - mean); the less they spread, the more trials each
  // is worth.
  const double spread = mean * (1 - mean);
  const double trials = static_cast<double>(count) * (variance > 0 ? std::max(1.0, spread / variance) : 1.0);
  const double scale = 1 + z * z / trials;
  const double middle = (mean + z * z / (2 * trials)) / scale;
  const double half = z * std::sqrt(spread / trials + z * z / (4 * trials * trials)) / scale;
  // The rounding of the two must not leave the mean outside.
  return {.low = std::clamp(middle - half, 0.0, mean), .high = std::clamp(middle + half, mean, 1.0)};
}

}  // namespace nearwise
