// Rows that a search has seen: a hash set with linear probing, of one warp.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"

namespace nearwise::gpu {

class RowSet {
 public:
  // slots: [size], a power of two above the number of rows.
  __device__ __forceinline__ RowSet(std::uint32_t* slots, std::uint32_t size) : slots_(slots), size_(size) {}

  // Called by all lanes.
  __device__ __forceinline__ void clear(std::uint32_t lane) {
    __syncwarp();  // all lanes are done with the rows
    for (std::uint32_t i = lane; i < size_; i += warp_lanes) slots_[i] = no_row;
    __syncwarp();  // cleared
  }

  // Whether the row was not in the set. Called by any lanes at once.
  __device__ __forceinline__ bool insert(std::uint32_t row) {
    const std::uint32_t hash = row * 2654435769U;
    for (std::uint32_t slot = hash ^ hash >> 16;; ++slot) {
      const std::uint32_t other = atomicCAS(slots_ + (slot & (size_ - 1)), no_row, row);
      if (other == no_row) return true;
      if (other == row) return false;
    }
  }

 private:
  static constexpr std::uint32_t no_row = UINT32_MAX;

  std::uint32_t* const slots_;
  const std::uint32_t size_;
};

}  // namespace nearwise::gpu
