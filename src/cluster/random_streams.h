// The random numbers of k-means: each use has a stream of its own.
#pragma once

#include <cstdint>
#include <limits>

#include "core/elementary.h"
#include "core/random.h"

namespace nearwise::cluster {

enum class Draw : std::uint64_t { sample, seeds, splits, batches };

// round: of seeding, or the iteration.
inline Random random_stream(std::uint64_t seed, Draw draw, std::uint64_t round = 0) {
  constexpr std::uint64_t uses = 8;
  return Random(seed, round * uses + static_cast<std::uint64_t>(draw));
}

// When a row comes in a race in which the probability to be the next is proportional to the weight: never without one.
inline double arrival_time(const Random& random, std::uint64_t row, double weight) {
  if (!(weight > 0)) return std::numeric_limits<double>::infinity();
  return -natural_logarithm(1 - random.uniform(row)) / weight;
}

}  // namespace nearwise::cluster
