// Pairs of rows, tile by tile: those whose scores do not exclude it are evaluated and offered to each other's lists.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/score_bound.h"
#include "nearwise/types.h"

namespace nearwise::gpu {

// Every row of a tile meets every column whose position is greater. Positions are those of members.
struct JoinTile {
  std::uint32_t first_row = 0;
  std::uint32_t first_column = 0;  // at least first_row
  std::uint32_t rows = 0;          // at most tuning::join_tile, and so are columns; none: nobody meets
  std::uint32_t columns = 0;
};

// All pointers are to device memory. Rows, lengths, lists and locks are by place.
struct JoinTask {
  const JoinTile* tiles = nullptr;
  std::uint32_t tile_count = 0;
  const std::uint32_t* members = nullptr;  // places
  const float* packed = nullptr;           // [rows, width] as pack_rows makes them, without a bias
  std::uint32_t width = 0;                 // a multiple of 4
  const Lengths* lengths = nullptr;        // of packed rows
  const std::byte* rows = nullptr;         // [rows, dim] as they are
  std::uint32_t dim = 0;
  Metric metric = Metric::sqeuclidean;
  ScoreBound bound;
  Lengths longest;           // no row is longer
  bool scores_hold = false;  // otherwise all pairs are evaluated
  std::uint32_t degree = 0;
  unsigned long long* lists = nullptr;  // [rows, degree] the bits of NeighborEntry, ascending
  unsigned* locks = nullptr;            // [rows] zero
};

void launch_join_tiles(cudaStream_t stream, ElementType type, const JoinTask& task);

}  // namespace nearwise::gpu
