// How many iterations of k-means are still to come, for the progress that is reported.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace nearwise::cluster {

// Falls of the error follow a power of the number of the iteration; training ends when one is at most
// tolerance * error. errors: of the iterations so far; limit: iterations left at most.
inline double expected_iterations(std::span<const double> errors, double tolerance, std::size_t limit) {
  const auto most = static_cast<double>(limit);
  const std::size_t count = errors.size();
  if (count < 3) return most;
  const double before = errors[count - 3] - errors[count - 2];
  const double last = errors[count - 2] - errors[count - 1];
  const double wanted = tolerance * errors[count - 1];
  if (!(last > 0) || !(before > last) || !(wanted > 0)) return most;
  // The k-th error, counted from 1, closes the (k - 1)-th fall.
  const auto number = static_cast<double>(count - 1);
  const double power = std::log(before / last) / std::log(number / (number - 1));
  const double end = number * std::pow(last / wanted, 1 / power);
  return std::clamp(std::ceil(end - number), 1.0, std::max(most, 1.0));
}

}  // namespace nearwise::cluster
