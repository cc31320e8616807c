// Local join of pairs of rows, tile by tile: pairs that scores do not exclude are evaluated and inserted into
// both neighbour lists.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/math/score_bound.h"
#include "nearwise/types.h"

namespace nearwise::gpu {

// Every row of a tile is compared with every column of a greater position. Positions are those in `members`.
struct JoinTile {
  std::uint32_t first_row = 0;
  std::uint32_t first_column = 0;  // at least first_row
  std::uint32_t rows = 0;          // at most tuning::join_tile, like columns; 0: empty tile
  std::uint32_t columns = 0;
};

// All pointers are to device memory. Rows, lengths, lists and locks have the same order.
struct JoinTask {
  const JoinTile* tiles = nullptr;
  std::uint32_t tile_count = 0;
  const std::uint32_t* members = nullptr;  // row indices
  const float* packed = nullptr;           // [rows, width] output of pack_rows, without bias
  std::uint32_t width = 0;                 // a multiple of 4
  const Lengths* lengths = nullptr;        // of packed rows
  const std::byte* rows = nullptr;         // [rows, dim] in their own type
  std::uint32_t dim = 0;
  Metric metric = Metric::sqeuclidean;
  ScoreBound bound;
  Lengths longest;           // upper bound over all rows
  bool scores_hold = false;  // otherwise all pairs are evaluated
  std::uint32_t degree = 0;
  unsigned long long* lists = nullptr;  // [rows, degree] bits of NeighborEntry, ascending
  unsigned* locks = nullptr;            // [rows] zero
};

void launch_join_tiles(cudaStream_t stream, ElementType type, const JoinTask& task);

}  // namespace nearwise::gpu
