// Tile sizes of queries and rows within a memory limit.
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
  Tiling max;
  std::size_t min_rows = 1;
};

// The largest tile with bytes_of(tiling) <= `bytes`, or the smallest possible.
template <typename BytesOf>
Tiling choose_tiling(const TileLimits& limits, const Tiling& all, std::uint64_t bytes,
                     const BytesOf& bytes_of) {
  Tiling tiling = {std::min(all.queries, limits.max.queries), std::min(all.rows, limits.max.rows)};
  while (bytes_of(tiling) > bytes) {
    if (tiling.queries > 1 && (tiling.queries * 32 >= tiling.rows || tiling.rows <= limits.min_rows))
      tiling.queries = divide_up<std::size_t>(tiling.queries, 2);
    else if (tiling.rows > limits.min_rows)
      tiling.rows = std::max(limits.min_rows, divide_up<std::size_t>(tiling.rows, 2));
    else
      break;
  }
  // Splits evenly: tiles differ by at most one row.
  tiling.rows = divide_up(all.rows, divide_up(all.rows, tiling.rows));
  return tiling;
}

}  // namespace nearwise::gpu
