// The body of select_rows; included by the files that instantiate it, a few small ones, since the
// longest queues take the compiler a minute.
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
  __shared__ Key candidates[tuning::warps_per_block][Selected::most_candidates];
  Selected selected(static_cast<int>(task.k), lane, candidates[threadIdx.x / warp_lanes]);
  // As turned(), by a multiplication: the units that compare have enough to do.
  const float sign = turned(1.0F, task.turn);
  // The next values are on their way while these are looked at.
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
    // Behind the end of the row: values i for which lane + 32 i is not less than what is left of it.
    if (last) pending &= (1U << ((end - first + warp_lanes - 1 - lane) / warp_lanes)) - 1;
    // Every lane takes its next pending value, whichever that is: it is read again, since a register cannot be
    // chosen at run time.
    for (bool more = true; more;) {
      const bool has_key = pending != 0;
      Key key = Key::worst();
      if (has_key) {
        const std::uint32_t position =
            first + static_cast<std::uint32_t>(lane + (__ffs(static_cast<int>(pending)) - 1) * warp_lanes);
        pending &= pending - 1;
        key = Key::make(image_of(turned(__ldg(row + position), task.turn)), position, part.ids);
      }
      selected.add(has_key, key);
      more = __any_sync(whole_warp, pending != 0);
      if (selected.full() || (last && !more)) selected.merge();
    }
  }

  // Made again rather than kept: its pointers would take registers all the way through the merges.
  const RowPart answer(task, number);
  selected.for_each([&](int rank, const Key& key) {
    answer.best[rank] = __ldg(answer.values + key.position());
    answer.best_ids[rank] = answer.ids.at(key.position());
  });
}

template <Ties ties, int Capacity>
void launch_select_rows(cudaStream_t stream, const SelectionTask& task) {
  const std::size_t blocks = (task.rows * task.parts + tuning::warps_per_block - 1) / tuning::warps_per_block;
  launch(select_rows<typename KeyOf<ties>::Type, Capacity>, dim3(static_cast<unsigned>(blocks)),
         dim3(tuning::warps_per_block * warp_lanes), 0, stream, task);
}

}  // namespace nearwise::gpu
