// The nearest rows that a search has found, in order, and which of them it has expanded; one beam per warp.
//
// RegisterBeam keeps them in registers and merges up to 32 rows at once by networks (lane_network.cuh).
// MemoryBeam keeps any number of them in memory. A row is offered once.
#pragma once

#include <cstdint>
#include <limits>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"

namespace nearwise::gpu {

// Sorted by distance, then row: distance << 32 | row << 1 | expanded. Rows are below 2^31, and distances
// below 2^31 - 1.
struct BeamKey {
  std::int64_t bits;

  static __device__ __forceinline__ BeamKey make(std::uint32_t distance, std::uint32_t row) {
    return {static_cast<std::int64_t>(std::uint64_t{distance} << 32 | std::uint64_t{row} << 1)};
  }
  // Neither is a row, and both count as expanded.
  static __device__ __forceinline__ BeamKey best() { return {std::numeric_limits<std::int64_t>::min() | 1}; }
  static __device__ __forceinline__ BeamKey worst() { return {std::numeric_limits<std::int64_t>::max()}; }
  __device__ __forceinline__ bool before(const BeamKey& other) const { return bits < other.bits; }
  __device__ __forceinline__ bool is_expanded() const { return (bits & 1) != 0; }
  __device__ __forceinline__ std::uint32_t row() const { return static_cast<std::uint32_t>(bits) >> 1; }

  template <typename Shuffle>
  __device__ __forceinline__ BeamKey shuffled(const Shuffle& shuffle) const {
    return {shuffle(bits)};
  }
};

template <int Capacity>
class RegisterBeam {
  static_assert(Capacity % warp_lanes == 0);

 public:
  // capacity: 1 to Capacity. Sentinels in front take the other places, so that the worst entry is always the
  // last element of the last register.
  __device__ __forceinline__ RegisterBeam(std::uint32_t capacity, std::uint32_t lane)
      : lane_(lane), capacity_(capacity) {
#pragma unroll
    for (int i = 0; i < registers; ++i) entries_[i] = place(i) < 0 ? BeamKey::best() : BeamKey::worst();
    worst_ = BeamKey::worst();
  }

  // Called by all lanes: puts in the keys of lanes that have one. Hundreds of instructions: call it once per
  // kernel.
  __device__ __forceinline__ void offer(bool has_key, const BeamKey& key) {
    const bool qualifies = has_key && key.before(worst_);
    const unsigned vote = __ballot_sync(whole_warp, qualifies);
    if (vote == 0) return;
    BeamKey sorted[1] = {qualifies ? key : BeamKey::worst()};
    const int lane = static_cast<int>(lane_);
    sort_odd<0, 1>(sorted, lane);
    merge_odd<0, registers, 0, 1, false>(entries_, sorted, lane);
    worst_ = entries_[registers - 1].shuffled(
        [](auto word) { return __shfl_sync(whole_warp, word, warp_lanes - 1); });
    size_ = min(capacity_, size_ + static_cast<std::uint32_t>(__popc(vote)));
  }

  // Takes the nearest row that is not expanded; false if there is none. Called by all lanes, and the same in
  // all.
  __device__ __forceinline__ bool expand(std::uint32_t& row) {
#pragma unroll
    for (int i = 0; i < registers; ++i) {
      const unsigned vote = __ballot_sync(whole_warp, !entries_[i].is_expanded());
      if (vote != 0) {
        const int source = __ffs(static_cast<int>(vote)) - 1;
        row = __shfl_sync(whole_warp, entries_[i].row(), source);
        if (static_cast<int>(lane_) == source) entries_[i].bits |= 1;
        return true;
      }
    }
    return false;
  }

  __device__ __forceinline__ std::uint32_t size() const { return size_; }

  // visit(place, key) for this lane's share of the rows.
  template <typename Visit>
  __device__ __forceinline__ void for_each(const Visit& visit) const {
#pragma unroll
    for (int i = 0; i < registers; ++i)
      if (place(i) >= 0 && place(i) < static_cast<int>(size_))
        visit(static_cast<std::uint32_t>(place(i)), entries_[i]);
  }

 private:
  static constexpr int registers = Capacity / warp_lanes;

  __device__ __forceinline__ int place(int index) const {
    return index * warp_lanes + static_cast<int>(lane_ + capacity_) - Capacity;
  }

  BeamKey entries_[registers];
  BeamKey worst_;
  const std::uint32_t lane_;
  const std::uint32_t capacity_;
  std::uint32_t size_ = 0;
};

class MemoryBeam {
 public:
  // entries: [capacity], at least 1.
  __device__ __forceinline__ MemoryBeam(std::uint32_t capacity, std::uint32_t lane, BeamKey* entries)
      : entries_(entries), worst_(BeamKey::worst()), lane_(lane), capacity_(capacity) {}

  // As those of RegisterBeam.
  __device__ __forceinline__ void offer(bool has_key, const BeamKey& key) {
    const bool qualifies = has_key && key.before(worst_);
    const unsigned vote = __ballot_sync(whole_warp, qualifies);
    if (vote == 0) return;
    const auto count = static_cast<std::uint32_t>(__popc(vote));
    BeamKey sorted[1] = {qualifies ? key : BeamKey::worst()};
    sort_odd<0, 1>(sorted, static_cast<int>(lane_));
    // Entries before the lane's key; lanes without a key have the size, or more than they need to.
    const std::uint32_t before = lane_ < count ? entries_before(sorted[0]) : UINT32_MAX;
    const std::uint32_t first = __shfl_sync(whole_warp, before, 0);
    // Moves entries up from the last on: those of a step were read before they are written over.
    for (std::uint32_t end = size_; end > first;) {
      const std::uint32_t begin = end > warp_lanes ? end - warp_lanes : 0;
      const std::uint32_t place = begin + lane_;
      const bool moves = place >= first && place < end;
      const std::uint32_t shift = keys_before(before, place);
      const BeamKey moved = moves ? read(place) : BeamKey::worst();
      __syncwarp();  // moved entries were read
      if (moves && place + shift < capacity_) entries_[place + shift].bits = moved.bits;
      __syncwarp();  // written before the next step reads
      end = begin;
    }
    if (lane_ < count && before + lane_ < capacity_) entries_[before + lane_].bits = sorted[0].bits;
    size_ = min(capacity_, size_ + count);
    next_ = min(next_, first);
    __syncwarp();  // acquires the entries of other lanes
    if (size_ == capacity_) worst_ = read(size_ - 1);
  }

  __device__ __forceinline__ bool expand(std::uint32_t& row) {
    for (; next_ < size_; next_ += warp_lanes) {
      const std::uint32_t place = next_ + lane_;
      const BeamKey key = place < size_ ? read(place) : BeamKey::worst();
      const unsigned vote = __ballot_sync(whole_warp, !key.is_expanded());
      if (vote != 0) {
        const int source = __ffs(static_cast<int>(vote)) - 1;
        row = __shfl_sync(whole_warp, key.row(), source);
        next_ += static_cast<std::uint32_t>(source) + 1;
        if (static_cast<int>(lane_) == source) entries_[place].bits = key.bits | 1;
        __syncwarp();  // the mark is visible
        return true;
      }
    }
    return false;
  }

  __device__ __forceinline__ std::uint32_t size() const { return size_; }

  template <typename Visit>
  __device__ __forceinline__ void for_each(const Visit& visit) const {
    for (std::uint32_t place = lane_; place < size_; place += warp_lanes) visit(place, read(place));
  }

 private:
  __device__ __forceinline__ BeamKey read(std::uint32_t place) const { return {entries_[place].bits}; }

  __device__ __forceinline__ std::uint32_t entries_before(const BeamKey& key) const {
    std::uint32_t low = 0;
    for (std::uint32_t high = size_; low < high;) {
      const std::uint32_t middle = (low + high) / 2;
      if (read(middle).before(key))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  // New keys before the entry at `place`: lanes are in the order of their keys. Called by all lanes.
  static __device__ __forceinline__ std::uint32_t keys_before(std::uint32_t before, std::uint32_t place) {
    std::uint32_t count = 0;
#pragma unroll
    for (std::uint32_t step = warp_lanes / 2; step > 0; step /= 2) {
      const std::uint32_t probed = __shfl_sync(whole_warp, before, static_cast<int>(count + step - 1));
      if (probed <= place) count += step;
    }
    return count + (__shfl_sync(whole_warp, before, static_cast<int>(count)) <= place ? 1 : 0);
  }

  BeamKey* const entries_;
  BeamKey worst_;
  const std::uint32_t lane_;
  const std::uint32_t capacity_;
  std::uint32_t size_ = 0;
  std::uint32_t next_ = 0;  // no entry before it is not expanded
};

}  // namespace nearwise::gpu
