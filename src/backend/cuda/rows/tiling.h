// How many queries and rows are looked at together: as many as are good, or as memory allows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/checked.h"

namespace nearwise::gpu {

struct Tiling {
  std::size_t queries = 0;
  std::size_t rows = 0;
};

struct TileLimits {
  Tiling most;
  std::size_t least_rows = 1;
};

// The largest tile of all queries and rows for which bytes_of(tiling) does not exceed `bytes`, or the least there is.
template <typename BytesOf>
Tiling choose_tiling(const TileLimits& limits, const Tiling& all, std::uint64_t bytes,
                     const BytesOf& bytes_of) {
  Tiling tiling = {std::min(all.queries, limits.most.queries), std::min(all.rows, limits.most.rows)};
  while (bytes_of(tiling) > bytes) {
    if (tiling.queries > 1 && (tiling.queries * 32 >= tiling.rows || tiling.rows <= limits.least_rows))
      tiling.queries = divide_up<std::size_t>(tiling.queries, 2);
    else if (tiling.rows > limits.least_rows)
      tiling.rows = std::max(limits.least_rows, divide_up<std::size_t>(tiling.rows, 2));
    else
      break;
  }
  // Evenly cut: tiles differ by a row at most.
  tiling.rows = divide_up(all.rows, divide_up(all.rows, tiling.rows));
  return tiling;
}

}  // namespace nearwise::gpu
