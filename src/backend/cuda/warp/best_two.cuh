// The two best keys that a lane, and then its warp, has seen.
#pragma once

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "backend/cuda/warp/selection_key.cuh"

namespace nearwise::gpu {

template <typename Key>
class BestTwo {
 public:
  // False only for a value that is not among the two best of this lane; see WarpSelect::may_qualify.
  __device__ __forceinline__ bool may_qualify(float turned_value) const {
    if constexpr (Key::ties_by_id)
      return !(turned_value > threshold_);
    else
      return !(turned_value >= threshold_);
  }

  __device__ __forceinline__ void add(const Key& key) {
    if (key.before(first_)) {
      second_ = first_;
      first_ = key;
    } else if (key.before(second_)) {
      second_ = key;
    }
    threshold_ = number_of(second_.image());
  }

  // By all lanes together: then every lane has the warp's.
  __device__ __forceinline__ void join_lanes() {
#pragma unroll
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
      const auto exchange = [&](auto word) { return __shfl_xor_sync(whole_warp, word, distance); };
      const Key other_first = first_.shuffled(exchange);
      const Key other_second = second_.shuffled(exchange);
      const bool mine = first_.before(other_first);
      // Behind the better first one comes the other, or what stood behind the better one.
      const Key behind = mine ? second_ : other_second;
      const Key beaten = mine ? other_first : first_;
      first_ = mine ? first_ : other_first;
      second_ = behind.before(beaten) ? behind : beaten;
    }
  }

  __device__ __forceinline__ const Key& first() const { return first_; }
  __device__ __forceinline__ const Key& second() const { return second_; }

 private:
  Key first_ = Key::worst();
  Key second_ = Key::worst();
  float threshold_ = number_of(nan_image);
};

}  // namespace nearwise::gpu
