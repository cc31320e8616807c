// The supported part of cooperative groups: the block, the grid, tiles of a warp.
#pragma once

#include "cuda_emulation/device/collectives.h"

namespace cooperative_groups {

struct thread_block {
  void sync(CUDA_EMULATION_LOCATION) const {
    ::cuda_emulation::block_barrier(::cuda_emulation::Barrier::plain, false, file, line);
  }
  unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  unsigned thread_rank() const { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
};
inline thread_block this_thread_block() { return {}; }

struct grid_group {
  void sync(CUDA_EMULATION_LOCATION) const { ::cuda_emulation::grid_barrier(file, line); }
};
inline grid_group this_grid() { return {}; }

template <unsigned lanes>
struct thread_block_tile {
  static_assert(lanes <= 32 && (lanes & (lanes - 1)) == 0);

  static unsigned first_lane() { return this_thread_block().thread_rank() & ~(lanes - 1); }
  static unsigned mask() { return lanes == 32 ? ~0u : ((1u << (lanes & 31)) - 1u) << first_lane(); }
  static constexpr unsigned size() { return lanes; }
  unsigned thread_rank() const { return this_thread_block().thread_rank() & (lanes - 1); }
  unsigned meta_group_rank() const { return this_thread_block().thread_rank() / lanes; }

  void sync(CUDA_EMULATION_LOCATION) const { __syncwarp(mask(), file, line); }
  template <typename T>
  T shfl(T value, int source, CUDA_EMULATION_LOCATION) const {
    return __shfl_sync(mask(), value, source, lanes, file, line);
  }
  template <typename T>
  T shfl_xor(T value, int distance, CUDA_EMULATION_LOCATION) const {
    return __shfl_xor_sync(mask(), value, distance, lanes, file, line);
  }
  template <typename T>
  T shfl_up(T value, unsigned delta, CUDA_EMULATION_LOCATION) const {
    return __shfl_up_sync(mask(), value, delta, lanes, file, line);
  }
  template <typename T>
  T shfl_down(T value, unsigned delta, CUDA_EMULATION_LOCATION) const {
    return __shfl_down_sync(mask(), value, delta, lanes, file, line);
  }
  unsigned ballot(int predicate, CUDA_EMULATION_LOCATION) const {
    return __ballot_sync(mask(), predicate, file, line) >> first_lane();
  }
  int any(int predicate, CUDA_EMULATION_LOCATION) const { return __any_sync(mask(), predicate, file, line); }
  int all(int predicate, CUDA_EMULATION_LOCATION) const { return __all_sync(mask(), predicate, file, line); }
};

template <unsigned lanes>
thread_block_tile<lanes> tiled_partition(const thread_block&) {
  return {};
}

}  // namespace cooperative_groups
