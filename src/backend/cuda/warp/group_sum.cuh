// Sums of a reported distance by eight threads, one of its lanes each (core/distance.h).
#pragma once

#include "backend/cuda/device/gpu.h"
#include "core/distance.h"

namespace nearwise::gpu {

inline constexpr int sum_group = distance_lanes;

// sum_of_lanes() in every thread of the group, with the same additions in the same order. Called by all
// lanes.
__device__ __forceinline__ double group_sum(double lane_sum) {
  static_assert(sum_group == 8);
  lane_sum += __shfl_xor_sync(0xFFFFFFFFU, lane_sum, 4);
  lane_sum += __shfl_xor_sync(0xFFFFFFFFU, lane_sum, 2);
  lane_sum += __shfl_xor_sync(0xFFFFFFFFU, lane_sum, 1);
  return lane_sum;
}

}  // namespace nearwise::gpu
