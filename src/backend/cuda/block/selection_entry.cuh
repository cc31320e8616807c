// A selected element and the order of such elements.
//
// Sorts of any length move 8-byte entries, an image and a position (the bits of a PositionKey). Ids that
// break ties are looked up only when images are equal.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/row_part.cuh"
#include "backend/cuda/warp/selection_key.cuh"

namespace nearwise::gpu {

using SelectionEntry = std::int64_t;

template <Ties ties>
__device__ __forceinline__ bool entry_before(SelectionEntry left, SelectionEntry right,
                                             const DeviceRowIds& ids) {
  if constexpr (ties == Ties::positions) {
    return left < right;
  } else {
    const PositionKey left_key = {left};
    const PositionKey right_key = {right};
    if (left_key.image() != right_key.image()) return left < right;
    const std::int64_t left_id = ids.at(left_key.position());
    const std::int64_t right_id = ids.at(right_key.position());
    return left_id != right_id ? left_id < right_id : left < right;
  }
}

}  // namespace nearwise::gpu
