// Odd-size merging and sorting networks on arrays in the registers of a warp.
//
// After Johnson, Douze, Jegou, "Billion-scale similarity search with GPUs", section 4.1. A lane-stride array
// of N registers has 32 N elements: element 32 i + j is register i of lane j. Distances that are multiples of
// 32 stay in a lane, shorter ones are butterfly shuffles. Registers are indexed by constants only (template
// arguments, unrolled loops): a computed index would move the array to local memory.
#pragma once

#include <bit>

#include "backend/cuda/device/gpu.h"

namespace nearwise::gpu {

inline constexpr unsigned whole_warp = 0xFFFFFFFFU;
inline constexpr int warp_lanes = 32;

// The end at which Algorithm 1 pads an array to a power of two.
enum class Side { left, right };

// The largest power of two less than Count.
template <int Count>
inline constexpr int power_of_two_below = static_cast<int>(std::bit_ceil(static_cast<unsigned>(Count)) / 2);

template <typename Key>
__device__ __forceinline__ Key exchanged(const Key& key, int lane_mask) {
  return key.shuffled([=](auto word) { return __shfl_xor_sync(whole_warp, word, lane_mask); });
}

template <typename Key>
__device__ __forceinline__ void compare_swap(Key& left, Key& right) {
  const bool swap = right.before(left);
  const Key lesser = swap ? right : left;
  right = swap ? left : right;
  left = lesser;
}

// Compares with the lane whose index differs by `lane_mask`; the upper lane keeps the greater key.
template <typename Key>
__device__ __forceinline__ void compare_swap_lanes(Key& key, int lane_mask, bool upper) {
  const Key other = exchanged(key, lane_mask);
  // Both lanes compare the same pair. Equal keys are bitwise equal, so either assignment is valid.
  key = other.before(key) != upper ? other : key;
}

// Algorithm 1, MERGE-ODD-CONTINUE, on registers Begin to Begin + Count - 1.
template <int Begin, int Count, Side side, typename Key>
__device__ __forceinline__ void merge_continue(Key* array, int lane) {
  if constexpr (Count == 1) {
#pragma unroll
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
      compare_swap_lanes(array[Begin], distance, (lane & distance) != 0);
  } else {
    constexpr int half = power_of_two_below<Count>;
    constexpr int rest = Count - half;
#pragma unroll
    for (int i = 0; i < rest; ++i) compare_swap(array[Begin + i], array[Begin + i + half]);
    constexpr int left_count = side == Side::left ? rest : half;
    merge_continue<Begin, left_count, Side::left>(array, lane);
    merge_continue<Begin + left_count, Count - left_count, Side::right>(array, lane);
  }
}

// Algorithm 1, MERGE-ODD, of two sorted arrays: `left` gets the first `LeftCount` registers of the result
// and, with `keep_right`, `right` gets the rest.
template <int LeftBegin, int LeftCount, int RightBegin, int RightCount, bool keep_right, typename Key>
__device__ __forceinline__ void merge_odd(Key* left, Key* right, int lane) {
  constexpr int pairs = LeftCount < RightCount ? LeftCount : RightCount;
#pragma unroll
  for (int i = 0; i < pairs; ++i) {
    // Compares the last element with the first and so on inwards: registers and lanes are reversed.
    Key& left_key = left[LeftBegin + LeftCount - 1 - i];
    Key& right_key = right[RightBegin + i];
    const Key mirrored_right = exchanged(right_key, warp_lanes - 1);
    if constexpr (keep_right) {
      const Key mirrored_left = exchanged(left_key, warp_lanes - 1);
      right_key = right_key.before(mirrored_left) ? mirrored_left : right_key;
    }
    left_key = mirrored_right.before(left_key) ? mirrored_right : left_key;
  }
  merge_continue<LeftBegin, LeftCount, Side::left>(left, lane);
  if constexpr (keep_right) merge_continue<RightBegin, RightCount, Side::right>(right, lane);
}

// Algorithm 2, SORT-ODD.
template <int Begin, int Count, typename Key>
__device__ __forceinline__ void sort_odd(Key* array, int lane) {
  if constexpr (Count == 1) {
#pragma unroll
    for (int sorted = 1; sorted < warp_lanes; sorted *= 2) {
      compare_swap_lanes(array[Begin], 2 * sorted - 1, (lane & sorted) != 0);
#pragma unroll
      for (int distance = sorted / 2; distance > 0; distance /= 2)
        compare_swap_lanes(array[Begin], distance, (lane & distance) != 0);
    }
  } else {
    constexpr int left_count = Count / 2;
    sort_odd<Begin, left_count>(array, lane);
    sort_odd<Begin + left_count, Count - left_count>(array, lane);
    merge_odd<Begin, left_count, Begin + left_count, Count - left_count, true>(array, array, lane);
  }
}

}  // namespace nearwise::gpu
