// A neighbour list in global memory, modified by one warp at a time under the list's lock.
//
// After Wang et al., "Large-scale approximate k-NN graph construction on GPU", section 4.3: a warp finds the
// position of an entry by a vote and shifts the entries after it. The paper has a lock per 32 entries; here a
// list is one sorted sequence with one lock. Entries that cannot enter are rejected first by comparison with
// the last entry, which is read without the lock: it only decreases, so a stale value admits more entries,
// never fewer. The final list does not depend on the order in which warps insert.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "core/neighbor_entry.h"

namespace nearwise::gpu {

// The bits of NeighborEntry in a type that atomic operations support.
using StoredEntry = unsigned long long;

class NeighborList {
 public:
  __device__ __forceinline__ NeighborList(StoredEntry* entries, std::uint32_t degree, unsigned* lock)
      : entries_(entries), degree_(degree), lock_(lock) {}

  // The last entry, possibly stale. Called by one thread.
  __device__ __forceinline__ NeighborEntry last() const {
    return static_cast<NeighborEntry>(atomicOr(entries_ + degree_ - 1, 0ULL));
  }

  // Inserts the entry if it is not in the list, new or old, and the list has room or a worse entry. Called by
  // a whole warp.
  __device__ __forceinline__ void try_insert(NeighborEntry entry) const {
    const std::uint32_t lane = threadIdx.x % warp_lanes;
    if (lane == 0) {
      while (atomicCAS(lock_, 0U, 1U) != 0) __nanosleep(20);
      __threadfence();  // acquires the previous owner's writes
    }
    __syncwarp();
    insert_locked(entry, lane);
    __syncwarp();
    if (lane == 0) {
      __threadfence();  // releases this warp's writes
      atomicExch(lock_, 0U);
    }
  }

 private:
  // Bypasses L1, since other warps wrote the list. The last entry is always atomic: last() reads it without
  // the lock.
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

  __device__ __forceinline__ void insert_locked(NeighborEntry entry, std::uint32_t lane) const {
    // The list is sorted: entries before the new one form a prefix.
    std::uint32_t position = 0;
    bool duplicate = false;
    for (std::uint32_t first = 0; first < degree_; first += warp_lanes) {
      const std::uint32_t index = first + lane;
      const NeighborEntry other = index < degree_ ? as_old(at(index)) : empty_entry;
      duplicate = duplicate || __any_sync(whole_warp, other == as_old(entry)) != 0;
      const unsigned before = __ballot_sync(whole_warp, other < as_old(entry));
      position += static_cast<std::uint32_t>(__popc(before));
      if (before != whole_warp) break;
    }
    if (duplicate || position >= degree_) return;
    // Shifts 32 entries at a time, from the end.
    for (std::uint32_t first = (degree_ - 1) / warp_lanes * warp_lanes;; first -= warp_lanes) {
      const std::uint32_t index = first + lane;
      const bool moves = index > position && index < degree_;
      const NeighborEntry moved = moves ? at(index - 1) : entry;
      __syncwarp();  // all reads precede all writes
      if (moves || index == position) set(index, moved);
      if (first <= position) break;
    }
  }

  StoredEntry* entries_;
  std::uint32_t degree_;
  unsigned* lock_;
};

}  // namespace nearwise::gpu
