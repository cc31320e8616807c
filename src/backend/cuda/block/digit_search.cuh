// One step of radix selection: which digit does the element of a given rank have?
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"

namespace nearwise::gpu {

inline constexpr int digit_bits = 8;
inline constexpr int digits = 1 << digit_bits;

struct DigitFound {
  std::uint32_t digit;
  std::uint32_t below;  // elements with lower digits
  std::uint32_t equal;  // elements with this one
};

// By the lanes of one warp. counts[digits]; rank from 1 to the sum of counts. Every lane gets the answer.
__device__ __forceinline__ DigitFound find_digit(const std::uint32_t* counts, std::uint32_t rank, int lane) {
  constexpr int per_lane = digits / warp_lanes;
  std::uint32_t sum = 0;
  // Every fourth lane's counts begin in the same bank: those lanes begin with different ones of them.
  for (int i = 0; i < per_lane; ++i) sum += counts[lane * per_lane + (i + lane / 4) % per_lane];
  std::uint32_t up_to_here = sum;
#pragma unroll
  for (int distance = 1; distance < warp_lanes; distance *= 2) {
    const std::uint32_t before = __shfl_up_sync(whole_warp, up_to_here, static_cast<unsigned>(distance));
    if (lane >= distance) up_to_here += before;
  }
  const int owner = __ffs(static_cast<int>(__ballot_sync(whole_warp, up_to_here >= rank))) - 1;
  DigitFound found = {static_cast<std::uint32_t>(lane * per_lane), up_to_here - sum, 0};
  if (lane == owner) {
    while (found.below + counts[found.digit] < rank) found.below += counts[found.digit++];
    found.equal = counts[found.digit];
  }
  found.digit = __shfl_sync(whole_warp, found.digit, owner);
  found.below = __shfl_sync(whole_warp, found.below, owner);
  found.equal = __shfl_sync(whole_warp, found.equal, owner);
  return found;
}

}  // namespace nearwise::gpu
