// Warps insert candidates into sorted segments of 32 entries under locks, correctly or with a chosen bug.
#pragma once

#include "backend/cuda/device/gpu.h"

namespace cuda_emulation {

enum class LockMistake { none, no_fence_at_release, no_lock, lane_leaves_warp };

// Inserts candidate i into segment `segments[i]` of `distances` and `ids`, both [segments, 32].
template <LockMistake mistake = LockMistake::none>
__global__ void locked_insert(const int* __restrict__ segments, const float* __restrict__ candidate_distances,
                              const int* __restrict__ candidate_ids, int candidates,
                              volatile float* distances, volatile int* ids, int* locks) {
  constexpr unsigned all_lanes = 0xffffffffu;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int warps = static_cast<int>(gridDim.x * blockDim.x) / 32;
  for (int candidate = warp; candidate < candidates; candidate += warps) {
    const int segment = segments[candidate];
    const int new_id = candidate_ids[candidate];
    const float new_distance = candidate_distances[candidate];
    if (mistake != LockMistake::no_lock && lane == 0) {
      while (atomicCAS(&locks[segment], 0, 1) != 0) __nanosleep(20);
      __threadfence();
    }
    __syncwarp();
    const float distance = distances[segment * 32 + lane];
    const int id = ids[segment * 32 + lane];
    const float distance_before = __shfl_up_sync(all_lanes, distance, 1);
    const int id_before = __shfl_up_sync(all_lanes, id, 1);
    if (mistake == LockMistake::lane_leaves_warp && lane == 0 && candidate % 2 == 0) continue;
    const bool known = __any_sync(all_lanes, id == new_id) != 0;
    const int position = __popc(__ballot_sync(all_lanes, distance <= new_distance));
    if (!known && position < 32 && lane >= position) {
      distances[segment * 32 + lane] = lane == position ? new_distance : distance_before;
      ids[segment * 32 + lane] = lane == position ? new_id : id_before;
    }
    __syncwarp();
    if (mistake != LockMistake::no_lock && lane == 0) {
      if (mistake != LockMistake::no_fence_at_release) __threadfence();
      atomicExch(&locks[segment], 0);
    }
  }
}

}  // namespace cuda_emulation
