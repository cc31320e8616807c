// WarpSelect: the k best keys that a warp has seen, all state in registers.
//
// After Johnson, Douze, Jegou, "Billion-scale similarity search with GPUs", section 4.2, Algorithm 3. The warp queue
// holds the best keys, sorted; every lane has a thread queue of keys that were better than the k-th when they came.
// When a lane's is full, all thread queues are sorted and merged into the warp queue.
//
// The warp queue has `Capacity` elements, of which k are wanted: the others begin as keys better than any, stay in
// front for ever, and so the k-th best is always the last element of the last register.
#pragma once

#include <cstdint>

#include "backend/cuda/warp/lane_network.cuh"
#include "backend/cuda/warp/selection_key.cuh"

namespace nearwise::gpu {

template <typename Key, int Capacity, int QueueLength>
class WarpSelect {
  static_assert(Capacity % warp_lanes == 0);

 public:
  __device__ __forceinline__ WarpSelect(int k, int lane) : lane_(lane), in_front_(Capacity - k) {
    // Not written as for_each has it: the compiler would keep the differences, one per register, all the way.
#pragma unroll
    for (int i = 0; i < registers; ++i)
      warp_queue_[i] = lane < in_front_ - i * warp_lanes ? Key::best() : Key::worst();
    clear_thread_queues();
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

  // Lanes call it as they please; a full thread queue must be merged before the next call.
  __device__ __forceinline__ void add(const Key& key) {
    if (!key.before(kth_)) return;
#pragma unroll
    for (int i = QueueLength - 1; i > 0; --i) thread_queue_[i] = thread_queue_[i - 1];
    thread_queue_[0] = key;
    ++count_;
  }

  __device__ __forceinline__ bool full() const { return count_ == QueueLength; }

  // By all lanes together. Thousands of instructions: one call in a kernel, or compile times explode.
  __device__ __forceinline__ void merge() {
    sort_odd<0, QueueLength>(thread_queue_, lane_);
    merge_odd<0, registers, 0, QueueLength, false>(warp_queue_, thread_queue_, lane_);
    clear_thread_queues();
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

  __device__ __forceinline__ void clear_thread_queues() {
#pragma unroll
    for (int i = 0; i < QueueLength; ++i) thread_queue_[i] = Key::worst();
    count_ = 0;
  }

  Key warp_queue_[registers];
  Key thread_queue_[QueueLength];
  Key kth_;
  float threshold_;
  int count_;
  const int lane_;
  const int in_front_;
};

}  // namespace nearwise::gpu
