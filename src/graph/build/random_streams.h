// The random numbers of graphs: each use has a stream of its own, none that k-means or a quantizer has.
#pragma once

#include <cstdint>

#include "core/random.h"

namespace nearwise::graph {

enum class Draw : std::uint64_t { partition_rows, centroids, neighbors, recall };

// round: of descent, or the number of an attempt.
inline Random random_stream(std::uint64_t seed, Draw draw, std::uint64_t round = 0) {
  constexpr std::uint64_t uses = 8;
  constexpr std::uint64_t first = std::uint64_t{1} << 40;
  return Random(seed, first + round * uses + static_cast<std::uint64_t>(draw));
}

}  // namespace nearwise::graph
