// Random streams of k-means, one per use.
#pragma once

#include <cstdint>
#include <limits>

#include "core/math/elementary.h"
#include "core/math/random.h"

namespace nearwise::cluster {

enum class Draw : std::uint64_t { sample, seeds, splits, batches };

// round: the seeding round or the iteration.
inline Random random_stream(std::uint64_t seed, Draw draw, std::uint64_t round = 0) {
  constexpr std::uint64_t uses = 8;
  return Random(seed, round * uses + static_cast<std::uint64_t>(draw));
}

// Arrival time in an exponential race: the probability to come next is proportional to the weight; infinity
// for weight 0.
inline double arrival_time(const Random& random, std::uint64_t row, double weight) {
  if (!(weight > 0)) return std::numeric_limits<double>::infinity();
  return -natural_logarithm(1 - random.uniform(row)) / weight;
}

// Bounds of it that need no logarithm: u <= -log(1 - u) <= u / (1 - u).
inline double earliest_arrival(const Random& random, std::uint64_t row, double weight) {
  if (!(weight > 0)) return std::numeric_limits<double>::infinity();
  return random.uniform(row) / weight;
}
inline double latest_arrival(const Random& random, std::uint64_t row, double weight) {
  if (!(weight > 0)) return std::numeric_limits<double>::infinity();
  const double uniform = random.uniform(row);
  return uniform / (1 - uniform) / weight;
}

}  // namespace nearwise::cluster
