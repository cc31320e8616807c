// One round of radix selection: finds the digit of the element of a given rank.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"

namespace nearwise::gpu {

inline constexpr int digit_bits = 8;
inline constexpr int digits = 1 << digit_bits;

struct DigitRank {
  std::uint32_t digit;
  std::uint32_t below;  // elements with smaller digits
  std::uint32_t equal;  // elements with this digit
};

// Called by all lanes of a warp. counts[digits]; rank from 1 to the sum of counts. Every lane gets the
// result.
__device__ __forceinline__ DigitRank find_digit(const std::uint32_t* counts, std::uint32_t rank, int lane) {
  constexpr int per_lane = digits / warp_lanes;
  std::uint32_t sum = 0;
  // The counts of every fourth lane start in the same bank: these lanes start at different offsets.
  for (int i = 0; i < per_lane; ++i) sum += counts[lane * per_lane + (i + lane / 4) % per_lane];
  std::uint32_t prefix_sum = sum;
#pragma unroll
  for (int distance = 1; distance < warp_lanes; distance *= 2) {
    const std::uint32_t previous = __shfl_up_sync(whole_warp, prefix_sum, static_cast<unsigned>(distance));
    if (lane >= distance) prefix_sum += previous;
  }
  const int owner = __ffs(static_cast<int>(__ballot_sync(whole_warp, prefix_sum >= rank))) - 1;
  DigitRank result = {static_cast<std::uint32_t>(lane * per_lane), prefix_sum - sum, 0};
  if (lane == owner) {
    while (result.below + counts[result.digit] < rank) result.below += counts[result.digit++];
    result.equal = counts[result.digit];
  }
  result.digit = __shfl_sync(whole_warp, result.digit, owner);
  result.below = __shfl_sync(whole_warp, result.below, owner);
  result.equal = __shfl_sync(whole_warp, result.equal, owner);
  return result;
}

}  // namespace nearwise::gpu
