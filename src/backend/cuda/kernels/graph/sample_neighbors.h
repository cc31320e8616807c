// Neighbourhoods of one NN-Descent iteration: the samples of graph/build/sample_neighbors.h on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/graph/join_tiles.h"
#include "core/math/random.h"

namespace nearwise::gpu {

// All pointers are to device memory. A link is a row index shifted left by one, with the new flag in the
// lowest bit.
struct SampleTask {
  // [rows, degree] bits of NeighborEntry; sampled new entries become old.
  unsigned long long* lists = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t degree = 0;
  std::uint32_t sample = 0;  // new neighbours per row, and old ones, in each direction
  std::uint32_t taken = 0;   // capacity of a row in `forward`: min(degree, 2 * sample)
  Random random;
  std::uint32_t* forward = nullptr;  // [rows, taken]
  // [rows] zero before; holds counts, then begins, then ends of the reverse links.
  unsigned long long* ends = nullptr;
  std::uint32_t* backward = nullptr;  // as many as forward links
};

// Samples forward links and counts reverse links.
void launch_sample_neighbors(cudaStream_t stream, const SampleTask& task);
// Writes reverse links; turns begins into ends.
void launch_reverse_links(cudaStream_t stream, const SampleTask& task);

// Neighbourhoods of a range of rows, and the tiles of their pairs: the same number for each, some empty.
struct NeighborhoodTask {
  std::uint32_t first_row = 0;
  std::uint32_t count = 0;
  std::uint32_t* members = nullptr;  // [count, 4 * sample]
  JoinTile* tiles = nullptr;         // [count, tiles_per_neighborhood(sample)]
};
std::size_t tiles_per_neighborhood(std::size_t sample);
void launch_gather_neighborhoods(cudaStream_t stream, const SampleTask& task, const NeighborhoodTask& batch);

}  // namespace nearwise::gpu
