// The neighbourhoods of a round of descent: the samples that graph/build/neighborhoods.h draws, on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/graph/join_tiles.h"
#include "core/random.h"

namespace nearwise::gpu {

// All pointers are to device memory. A link is the number of a row and, in its lowest bit, whether it is new.
struct DrawTask {
  unsigned long long* lists =
      nullptr;  // [rows, degree] the bits of NeighborEntry; new ones that are taken become old
  std::uint32_t rows = 0;
  std::uint32_t degree = 0;
  std::uint32_t sample = 0;  // new neighbours of a row, and others, in either direction
  std::uint32_t taken = 0;   // places of a row in `forward`: the lesser of degree and 2 * sample
  Random random;
  std::uint32_t* forward = nullptr;  // [rows, taken]
  // [rows] zero before; the numbers of links back, where they begin, and where they end, one after the other.
  unsigned long long* ends = nullptr;
  std::uint32_t* backward = nullptr;  // as many as links forward
};

// Links forward, and how many there are back.
void launch_take_neighbors(cudaStream_t stream, const DrawTask& task);
// Links back, from where they begin: that becomes where they end.
void launch_link_back(cudaStream_t stream, const DrawTask& task);

// The neighbourhoods of some rows, and the tiles of their pairs; as many for each, empty ones among them.
struct NeighborhoodTask {
  std::uint32_t first_row = 0;
  std::uint32_t count = 0;
  std::uint32_t* members = nullptr;  // [count, 4 * sample]
  JoinTile* tiles = nullptr;         // [count, tiles_per_neighborhood(sample)]
};
std::size_t tiles_per_neighborhood(std::size_t sample);
void launch_fill_neighborhoods(cudaStream_t stream, const DrawTask& task, const NeighborhoodTask& of);

}  // namespace nearwise::gpu
