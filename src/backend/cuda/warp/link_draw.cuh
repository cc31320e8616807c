// Some links of one kind, drawn by chance by a warp: those of the lowest random numbers of (row, other row), which is what
// graph/build/neighborhoods.cpp draws.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "core/random.h"

namespace nearwise::gpu {

// A link is the number of a row and, in its lowest bit, whether it is new.
inline constexpr std::uint32_t no_link = UINT32_MAX;

__device__ __forceinline__ bool is_kind(std::uint32_t link, bool is_new) {
  return link != no_link && ((link & 1U) != 0) == is_new;
}

// Where a link comes in the order of a row's draw. No two links of a row are at the same place.
struct DrawPlace {
  std::uint64_t bits = 0;
  std::uint32_t link = 0;

  __device__ __forceinline__ bool before(const DrawPlace& other) const {
    return bits != other.bits ? bits < other.bits : link < other.link;
  }
};

class LinkDraw {
 public:
  // Draws `most` of those links [count] that are of the kind. By a whole warp.
  template <typename LinkAt>
  __device__ __forceinline__ LinkDraw(const Random& random, std::uint32_t row, bool is_new,
                                      std::uint32_t most, std::uint64_t count, const LinkAt& link_at)
      : random_(random), row_(row), is_new_(is_new) {
    const std::uint32_t lane = threadIdx.x % warp_lanes;
    std::uint32_t found = 0;
    for (std::uint64_t i = lane; i < count; i += warp_lanes) found += is_kind(link_at(i), is_new) ? 1 : 0;
    for (int step = warp_lanes / 2; step > 0; step /= 2) found += __shfl_xor_sync(whole_warp, found, step);
    all_ = found <= most;
    if (all_) return;
    // One after the other: few are drawn, and few rows have many links.
    for (std::uint32_t drawn = 0; drawn < most; ++drawn) {
      DrawPlace next = {UINT64_MAX, no_link};
      for (std::uint64_t i = lane; i < count; i += warp_lanes) {
        const std::uint32_t link = link_at(i);
        if (!is_kind(link, is_new)) continue;
        const DrawPlace place = place_of(link);
        if ((drawn == 0 || last_.before(place)) && place.before(next)) next = place;
      }
      for (int step = warp_lanes / 2; step > 0; step /= 2) {
        const std::uint64_t bits = __shfl_xor_sync(whole_warp, next.bits, step);
        const std::uint32_t link = __shfl_xor_sync(whole_warp, next.link, step);
        const DrawPlace other = {bits, link};
        if (other.before(next)) next = other;
      }
      last_ = next;
    }
  }

  // Whether this link, one of them or of the other kind, was drawn.
  __device__ __forceinline__ bool has(std::uint32_t link) const {
    return is_kind(link, is_new_) && (all_ || !last_.before(place_of(link)));
  }

 private:
  __device__ __forceinline__ DrawPlace place_of(std::uint32_t link) const {
    return {random_.bits(std::uint64_t{row_} << 32 | link >> 1), link};
  }

  const Random& random_;
  const std::uint32_t row_;
  const bool is_new_;
  bool all_ = false;
  DrawPlace last_;  // that was drawn
};

}  // namespace nearwise::gpu
