// WarpSelect: the k best keys that a warp has seen, in registers.
//
// After Johnson, Douze, Jegou, "Billion-scale similarity search with GPUs", section 4.2, Algorithm 3. The warp queue
// holds the best keys, sorted; candidates, keys that were better than the k-th when they came, wait until there are
// enough to sort and merge them into the warp queue. Where the paper has a queue of candidates in the registers of every
// lane, one of which is full long before the others, all lanes share one in shared memory: merges are half as many.
//
// The warp queue has `Capacity` elements, of which k are wanted: the others begin as keys better than any, stay in
// front for ever, and so the k-th best is always the last element of the last register.
#pragma once

#include <cstdint>

#include "backend/cuda/warp/lane_network.cuh"
#include "backend/cuda/warp/selection_key.cuh"

namespace nearwise::gpu {

// `CandidateRegisters` is the room for candidates, in registers of a warp.
template <typename Key, int Capacity, int CandidateRegisters>
class WarpSelect {
  static_assert(Capacity % warp_lanes == 0);
  // One is left free before every call of add: it holds a key of every lane.
  static_assert(CandidateRegisters >= 2);

 public:
  static constexpr int most_candidates = CandidateRegisters * warp_lanes;

  // `candidates`: this warp's [most_candidates] in shared memory.
  __device__ __forceinline__ WarpSelect(int k, int lane, Key* candidates)
      : candidates_(candidates), lane_(lane), in_front_(Capacity - k) {
    // Not written as for_each has it: the compiler would keep the differences, one per register, all the way.
#pragma unroll
    for (int i = 0; i < registers; ++i)
      warp_queue_[i] = lane < in_front_ - i * warp_lanes ? Key::best() : Key::worst();
    kth_ = Key::worst();
    threshold_ = number_of(nan_image);
  }

  // False only for a value that is not among the k best: the test for the many, in one comparison. Elements come in
  // the order of positions, so that where ties go by position a value equal to the k-th comes too late. A threshold
  // that is NaN, while there are fewer than k numbers, lets all pass; NaNs always pass, and are seen through by add.
  __device__ __forceinline__ bool may_qualify(float turned_value) const {
    if constexpr (Key::ties_by_id)
      return !(turned_value > threshold_);
    else
      return !(turned_value >= threshold_);
  }

  // By all lanes together: the keys of those that have one. What is full must be merged before the next call.
  __device__ __forceinline__ void add(bool has_key, const Key& key) {
    const bool joins = has_key && key.before(kth_);
    const unsigned joining = __ballot_sync(whole_warp, joins);
    const unsigned in_front = joining & ((1U << lane_) - 1);
    if (joins) candidates_[count_ + __popc(in_front)] = key;
    count_ += __popc(joining);
  }

  // The same in all lanes.
  __device__ __forceinline__ bool full() const { return count_ > most_candidates - warp_lanes; }

  // By all lanes together. Thousands of instructions: one call in a kernel, or compile times explode.
  __device__ __forceinline__ void merge() {
    Key sorted[CandidateRegisters];
    __syncwarp();  // candidates are what other lanes wrote
#pragma unroll
    for (int i = 0; i < CandidateRegisters; ++i) {
      sorted[i] = Key::worst();
      // Word by word: a key may have padding, which nobody wrote.
      if (lane_ < count_ - i * warp_lanes)
        sorted[i] = candidates_[lane_ + i * warp_lanes].shuffled([](auto word) { return word; });
    }
    __syncwarp();  // the next ones go where these were
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
      const int rank = i * warp_lanes + lane_ - in_front_;
      if (rank >= 0) write(rank, warp_queue_[i]);
    }
  }

 private:
  static constexpr int registers = Capacity / warp_lanes;

  Key warp_queue_[registers];
  Key kth_;
  float threshold_;
  Key* const candidates_;
  int count_ = 0;  // of candidates
  const int lane_;
  const int in_front_;
};

}  // namespace nearwise::gpu
