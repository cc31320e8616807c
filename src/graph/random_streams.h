// Random streams of graph construction: one per use, distinct from those of k-means and the quantizers.
#pragma once

#include <cstdint>

#include "core/math/random.h"

namespace nearwise::graph {

enum class Draw : std::uint64_t { partition_rows, centroids, neighbors, recall };

// round: the NN-Descent iteration, or the attempt.
inline Random random_stream(std::uint64_t seed, Draw draw, std::uint64_t round = 0) {
  constexpr std::uint64_t uses = 8;
  constexpr std::uint64_t first = std::uint64_t{1} << 40;
  return Random(seed, first + round * uses + static_cast<std::uint64_t>(draw));
}

}  // namespace nearwise::graph
