// A row's neighbour list in global memory, changed by one warp at a time under the list's lock.
//
// After Wang et al., "Large-scale approximate k-NN graph construction on GPU", section 4.3: a warp finds the place of an
// entry by a vote and moves those behind it. There a list has a lock per 32 entries; here it has one, as all of its entries
// are in one order, and whoever cannot come in is turned away before: the last entry is read without the lock. It only ever
// falls, so that an outdated one lets more entries through, never fewer. What a list holds does not depend on the order
// in which warps came.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "core/neighbor_entry.h"

namespace nearwise::gpu {

// Entries as atomic operations know them: the bits of NeighborEntry.
using StoredEntry = unsigned long long;

class NeighborList {
 public:
  __device__ __forceinline__ NeighborList(StoredEntry* entries, std::uint32_t degree, unsigned* lock)
      : entries_(entries), degree_(degree), lock_(lock) {}

  // The last entry, maybe as it was a moment ago. By one thread.
  __device__ __forceinline__ NeighborEntry last() const {
    return static_cast<NeighborEntry>(atomicOr(entries_ + degree_ - 1, 0ULL));
  }

  // Puts the entry where the list has room or worse ones and does not know it, fresh or old. By a whole warp.
  __device__ __forceinline__ void offer(NeighborEntry entry) const {
    const std::uint32_t lane = threadIdx.x % warp_lanes;
    if (lane == 0) {
      while (atomicCAS(lock_, 0U, 1U) != 0) __nanosleep(20);
      __threadfence();  // what the warp before wrote
    }
    __syncwarp();
    insert(entry, lane);
    __syncwarp();
    if (lane == 0) {
      __threadfence();  // what this warp wrote
      atomicExch(lock_, 0U);
    }
  }

 private:
  // Others wrote the list a moment ago: it is read past L1. The last entry is atomic everywhere, as last() has no lock.
  __device__ __forceinline__ NeighborEntry at(std::uint32_t index) const {
    return index == degree_ - 1 ? last() : static_cast<NeighborEntry>(__ldcg(entries_ + index));
  }
  __device__ __forceinline__ void set(std::uint32_t index, NeighborEntry entry) const {
    const auto stored = static_cast<StoredEntry>(entry);
    if (index == degree_ - 1)
      atomicExch(entries_ + index, stored);
    else
      entries_[index] = stored;
  }

  __device__ __forceinline__ void insert(NeighborEntry entry, std::uint32_t lane) const {
    // Those before the entry are the first ones: lists ascend.
    std::uint32_t place = 0;
    bool known = false;
    for (std::uint32_t first = 0; first < degree_; first += warp_lanes) {
      const std::uint32_t index = first + lane;
      const NeighborEntry other = index < degree_ ? as_old(at(index)) : empty_entry;
      known = known || __any_sync(whole_warp, other == as_old(entry)) != 0;
      const unsigned before = __ballot_sync(whole_warp, other < as_old(entry));
      place += static_cast<std::uint32_t>(__popc(before));
      if (before != whole_warp) break;
    }
    if (known || place >= degree_) return;
    // From the end, 32 at a time.
    for (std::uint32_t first = (degree_ - 1) / warp_lanes * warp_lanes;; first -= warp_lanes) {
      const std::uint32_t index = first + lane;
      const bool moves = index > place && index < degree_;
      const NeighborEntry moved = moves ? at(index - 1) : entry;
      __syncwarp();  // all are read before any is written
      if (moves || index == place) set(index, moved);
      if (first <= place) break;
    }
  }

  StoredEntry* entries_;
  std::uint32_t degree_;
  unsigned* lock_;
};

}  // namespace nearwise::gpu
