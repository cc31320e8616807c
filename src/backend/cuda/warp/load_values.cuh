// Loads values of a row into the lanes of a warp.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"

namespace nearwise::gpu {

// Value i of a lane is column first + 32 i + lane; columns past the end are not read.
template <int Count>
__device__ __forceinline__ void load_values(float (&values)[Count], const float* row, std::uint32_t first,
                                            std::uint32_t end, int lane) {
  if (end - first >= Count * warp_lanes) {
#pragma unroll
    for (int i = 0; i < Count; ++i) values[i] = __ldg(row + first + lane + i * warp_lanes);
  } else {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const std::uint32_t position = first + static_cast<std::uint32_t>(lane + i * warp_lanes);
      values[i] = position < end ? __ldg(row + position) : 0.0F;
    }
  }
}

}  // namespace nearwise::gpu
