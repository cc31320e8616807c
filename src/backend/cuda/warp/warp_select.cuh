// WarpSelect: the k best keys of a warp, in registers.
//
// After Johnson, Douze, Jegou, "Billion-scale similarity search with GPUs", section 4.2, Algorithm 3. The
// warp queue has the best keys, sorted. Candidates, keys better than the k-th best when they arrived, are
// buffered until they are sorted and merged into the warp queue. The paper has a thread queue per lane, one
// of which is full long before the others; here all lanes share one candidate queue in shared memory, which
// halves the merges.
//
// The warp queue has `Capacity` elements. Capacity - k of them are sentinels better than any key, which stay
// in front, so that the k-th best is always the last element of the last register.
#pragma once

#include <cstdint>

#include "backend/cuda/warp/lane_network.cuh"
#include "backend/cuda/warp/selection_key.cuh"

namespace nearwise::gpu {

// CandidateRegisters: size of the candidate queue, in registers of a warp.
template <typename Key, int Capacity, int CandidateRegisters>
class WarpSelect {
  static_assert(Capacity % warp_lanes == 0);
  // One register is free before every call of add(), which may append a key of every lane.
  static_assert(CandidateRegisters >= 2);

 public:
  static constexpr int max_candidates = CandidateRegisters * warp_lanes;

  // candidates: this warp's queue [max_candidates] in shared memory.
  __device__ __forceinline__ WarpSelect(int k, int lane, Key* candidates)
      : candidates_(candidates), lane_(lane), sentinels_(Capacity - k) {
    // Not written like for_each(): the compiler would keep one difference per register alive.
#pragma unroll
    for (int i = 0; i < registers; ++i)
      warp_queue_[i] = lane < sentinels_ - i * warp_lanes ? Key::best() : Key::worst();
    kth_ = Key::worst();
    threshold_ = number_of(nan_image);
  }

  // False only if a value is not among the k best; one comparison rejects most values. Elements arrive in
  // position order, so with ties by position a value equal to the k-th best cannot qualify. The threshold is
  // NaN, which accepts everything, until there are k numbers; NaNs always pass and are rejected by add().
  __device__ __forceinline__ bool may_qualify(float oriented_value) const {
    if constexpr (Key::ties_by_id)
      return !(oriented_value > threshold_);
    else
      return !(oriented_value >= threshold_);
  }

  // Called by all lanes: appends the keys of lanes that have one. merge() must follow if the queue is full.
  __device__ __forceinline__ void add(bool has_key, const Key& key) {
    const bool qualifies = has_key && key.before(kth_);
    const unsigned qualifying = __ballot_sync(whole_warp, qualifies);
    const unsigned lower_lanes = qualifying & ((1U << lane_) - 1);
    if (qualifies) candidates_[count_ + __popc(lower_lanes)] = key;
    count_ += __popc(qualifying);
  }

  // The same in all lanes.
  __device__ __forceinline__ bool full() const { return count_ > max_candidates - warp_lanes; }

  // Called by all lanes. Thousands of instructions: call it once per kernel to limit compile time.
  __device__ __forceinline__ void merge() {
    Key sorted[CandidateRegisters];
    __syncwarp();  // acquires the candidates of other lanes
#pragma unroll
    for (int i = 0; i < CandidateRegisters; ++i) {
      sorted[i] = Key::worst();
      // Copied word by word: padding of a key is uninitialised.
      if (lane_ < count_ - i * warp_lanes)
        sorted[i] = candidates_[lane_ + i * warp_lanes].shuffled([](auto word) { return word; });
    }
    __syncwarp();  // candidates consumed
    count_ = 0;
    sort_odd<0, CandidateRegisters>(sorted, lane_);
    merge_odd<0, registers, 0, CandidateRegisters, false>(warp_queue_, sorted, lane_);
    kth_ = warp_queue_[registers - 1].shuffled(
        [](auto word) { return __shfl_sync(whole_warp, word, warp_lanes - 1); });
    threshold_ = number_of(kth_.image());
  }

  // write(rank, key) for this lane's share of the k best.
  template <typename Write>
  __device__ __forceinline__ void for_each(const Write& write) const {
#pragma unroll
    for (int i = 0; i < registers; ++i) {
      const int rank = i * warp_lanes + lane_ - sentinels_;
      if (rank >= 0) write(rank, warp_queue_[i]);
    }
  }

 private:
  static constexpr int registers = Capacity / warp_lanes;

  Key warp_queue_[registers];
  Key kth_;
  float threshold_;
  Key* const candidates_;
  int count_ = 0;  // candidates
  const int lane_;
  const int sentinels_;
};

}  // namespace nearwise::gpu
