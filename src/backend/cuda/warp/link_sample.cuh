// Random sample of a row's links by a warp: those with the smallest random numbers of (row, other row), the
// same sample as graph/build/sample_neighbors.cpp.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "core/math/random.h"

namespace nearwise::gpu {

// A link is a row index shifted left by one, with the new flag in the lowest bit.
inline constexpr std::uint32_t no_link = UINT32_MAX;

__device__ __forceinline__ bool has_flag(std::uint32_t link, bool is_new) {
  return link != no_link && ((link & 1U) != 0) == is_new;
}

// Sort key of a link in a row's sample. Keys of a row are distinct.
struct SampleKey {
  std::uint64_t bits = 0;
  std::uint32_t link = 0;

  __device__ __forceinline__ bool before(const SampleKey& other) const {
    return bits != other.bits ? bits < other.bits : link < other.link;
  }
};

class LinkSample {
 public:
  // Samples up to `max_count` of the links [count] with this flag. Called by a whole warp.
  template <typename LinkAt>
  __device__ __forceinline__ LinkSample(const Random& random, std::uint32_t row, bool is_new,
                                        std::uint32_t max_count, std::uint64_t count, const LinkAt& link_at)
      : random_(random), row_(row), is_new_(is_new) {
    const std::uint32_t lane = threadIdx.x % warp_lanes;
    std::uint32_t matching = 0;
    for (std::uint64_t i = lane; i < count; i += warp_lanes) matching += has_flag(link_at(i), is_new) ? 1 : 0;
    for (int step = warp_lanes / 2; step > 0; step /= 2)
      matching += __shfl_xor_sync(whole_warp, matching, step);
    all_ = matching <= max_count;
    if (all_) return;
    // Selected one by one: samples are small, and few rows have many links.
    for (std::uint32_t sampled = 0; sampled < max_count; ++sampled) {
      SampleKey next = {UINT64_MAX, no_link};
      for (std::uint64_t i = lane; i < count; i += warp_lanes) {
        const std::uint32_t link = link_at(i);
        if (!has_flag(link, is_new)) continue;
        const SampleKey key = key_of_link(link);
        if ((sampled == 0 || last_.before(key)) && key.before(next)) next = key;
      }
      for (int step = warp_lanes / 2; step > 0; step /= 2) {
        const std::uint64_t bits = __shfl_xor_sync(whole_warp, next.bits, step);
        const std::uint32_t link = __shfl_xor_sync(whole_warp, next.link, step);
        const SampleKey other = {bits, link};
        if (other.before(next)) next = other;
      }
      last_ = next;
    }
  }

  // Whether this link, if it has the flag, was sampled.
  __device__ __forceinline__ bool contains(std::uint32_t link) const {
    return has_flag(link, is_new_) && (all_ || !last_.before(key_of_link(link)));
  }

 private:
  __device__ __forceinline__ SampleKey key_of_link(std::uint32_t link) const {
    return {random_.bits(std::uint64_t{row_} << 32 | link >> 1), link};
  }

  const Random& random_;
  const std::uint32_t row_;
  const bool is_new_;
  bool all_ = false;
  SampleKey last_;  // last sampled link
};

}  // namespace nearwise::gpu
