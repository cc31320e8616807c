// The two best keys of a lane, and then of its warp.
#pragma once

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "backend/cuda/warp/selection_key.cuh"

namespace nearwise::gpu {

template <typename Key>
class BestTwo {
 public:
  // False only if the value is not among the two best of this lane; see WarpSelect::may_qualify.
  __device__ __forceinline__ bool may_qualify(float oriented_value) const {
    if constexpr (Key::ties_by_id)
      return !(oriented_value > threshold_);
    else
      return !(oriented_value >= threshold_);
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

  // Called by all lanes: afterwards every lane has the two best keys of the warp.
  __device__ __forceinline__ void reduce_lanes() {
#pragma unroll
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
      const auto exchange = [&](auto word) { return __shfl_xor_sync(whole_warp, word, distance); };
      const Key other_first = first_.shuffled(exchange);
      const Key other_second = second_.shuffled(exchange);
      const bool own_wins = first_.before(other_first);
      // The new second is the better of the losing first and the winner's second.
      const Key winner_second = own_wins ? second_ : other_second;
      const Key loser_first = own_wins ? other_first : first_;
      first_ = own_wins ? first_ : other_first;
      second_ = winner_second.before(loser_first) ? winner_second : loser_first;
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
