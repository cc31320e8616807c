// Implementation of select_rows, included by the files that instantiate it: long queues take a minute to
// compile.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/kernels/select/select_rows.h"
#include "backend/cuda/tuning/selection.h"
#include "backend/cuda/warp/load_values.cuh"
#include "backend/cuda/warp/row_part.cuh"
#include "backend/cuda/warp/warp_select.cuh"

namespace nearwise::gpu {

template <typename Key, int Capacity>
__global__ void __launch_bounds__(tuning::warps_per_block* warp_lanes,
                                  tuning::resident_blocks<Capacity, sizeof(Key) / 4>)
    select_rows(SelectionTask task) {
  constexpr int count = tuning::values_per_lane;
  constexpr std::uint32_t step = count * warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::uint32_t number = blockIdx.x * tuning::warps_per_block + threadIdx.x / warp_lanes;
  if (number >= task.rows * task.parts) return;
  const RowPart part(task, number);
  const float* const row = part.values;
  const std::uint32_t end = part.end;
  std::uint32_t first = part.first;

  using Selected = WarpSelect<Key, Capacity, tuning::candidate_registers<Capacity>>;
  __shared__ Key candidates[tuning::warps_per_block][Selected::max_candidates];
  Selected selected(static_cast<int>(task.k), lane, candidates[threadIdx.x / warp_lanes]);
  // Same as oriented(), by a multiplication: the integer and compare units are the bottleneck.
  const float sign = oriented(1.0F, task.sign_mask);
  // Prefetches the next values.
  float next[count];
  load_values(next, row, first, end, lane);
  for (bool last = false; !last; first += step) {
    float values[count];
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = next[i] * sign;
    last = end - first <= step;
    if (!last) load_values(next, row, first + step, end, lane);
    bool any = last;
#pragma unroll
    for (int i = 0; i < count; ++i) any = any || selected.may_qualify(values[i]);
    if (!__any_sync(whole_warp, any)) continue;

    std::uint32_t pending = 0;  // bit i: value i of this lane
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (selected.may_qualify(values[i])) pending |= 1U << i;
    // Clears the bits past the end of the row.
    if (last) pending &= (1U << ((end - first + warp_lanes - 1 - lane) / warp_lanes)) - 1;
    // Every lane takes its next pending value and reads it again, since registers cannot be indexed at run
    // time.
    for (bool more = true; more;) {
      const bool has_key = pending != 0;
      Key key = Key::worst();
      if (has_key) {
        const std::uint32_t position =
            first + static_cast<std::uint32_t>(lane + (__ffs(static_cast<int>(pending)) - 1) * warp_lanes);
        pending &= pending - 1;
        key = Key::make(image_of(oriented(__ldg(row + position), task.sign_mask)), position, part.ids);
      }
      selected.add(has_key, key);
      more = __any_sync(whole_warp, pending != 0);
      if (selected.full() || (last && !more)) selected.merge();
    }
  }

  // Recomputed: keeping its pointers would occupy registers during the merges.
  const RowPart output(task, number);
  selected.for_each([&](int rank, const Key& key) {
    output.best[rank] = __ldg(output.values + key.position());
    output.best_ids[rank] = output.ids.at(key.position());
  });
}

template <Ties ties, int Capacity>
void launch_select_rows(cudaStream_t stream, const SelectionTask& task) {
  const std::size_t blocks = (task.rows * task.parts + tuning::warps_per_block - 1) / tuning::warps_per_block;
  launch(select_rows<typename KeyOf<ties>::Type, Capacity>, dim3(static_cast<unsigned>(blocks)),
         dim3(tuning::warps_per_block * warp_lanes), 0, stream, task);
}

}  // namespace nearwise::gpu
