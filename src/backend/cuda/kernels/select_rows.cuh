// The body of select_rows; included by the files that instantiate it, a few small ones, since the
// longest queues take the compiler a minute.
#pragma once

#include <cstdint>

#include "backend/cuda/gpu.h"
#include "backend/cuda/kernels/select_rows.h"
#include "backend/cuda/tuning/selection.h"
#include "backend/cuda/warp/load_values.cuh"
#include "backend/cuda/warp/row_part.cuh"
#include "backend/cuda/warp/warp_select.cuh"

namespace nearwise::gpu {

template <typename Key, int Capacity>
__global__ void __launch_bounds__(tuning::warps_per_block* warp_lanes,
                                  tuning::resident_blocks<Capacity, sizeof(Key) / 4>)
    select_rows(SelectionTask task) {
  constexpr int count = tuning::values_per_lane<Capacity>;
  constexpr std::uint32_t step = count * warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::uint32_t number = blockIdx.x * tuning::warps_per_block + threadIdx.x / warp_lanes;
  if (number >= task.rows * task.parts) return;
  const RowPart part(task, number);
  const float* const row = part.values;
  const std::uint32_t end = part.end;
  std::uint32_t first = part.first;

  WarpSelect<Key, Capacity, tuning::thread_queue_length<Capacity>> selected(static_cast<int>(task.k), lane);
  // The next values are on their way while these are looked at.
  float next[count];
  load_values(next, row, first, end, lane);
  for (bool last = false; !last; first += step) {
    float values[count];
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = turned(next[i], task.turn);
    last = end - first <= step;
    if (!last) load_values(next, row, first + step, end, lane);
    bool any = last;
#pragma unroll
    for (int i = 0; i < count; ++i) any = any || selected.may_qualify(values[i]);
    if (!__any_sync(whole_warp, any)) continue;

    std::uint32_t pending = 0;  // bit i: value i of this lane
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (selected.may_qualify(values[i]) && first + static_cast<std::uint32_t>(lane + i * warp_lanes) < end)
        pending |= 1U << i;
    // Every lane takes its next pending value, whichever that is: it is read again, since a register cannot be
    // chosen at run time.
    for (bool more = true; more;) {
      if (pending != 0) {
        const std::uint32_t position =
            first + static_cast<std::uint32_t>(lane + (__ffs(static_cast<int>(pending)) - 1) * warp_lanes);
        pending &= pending - 1;
        selected.add(Key::make(image_of(turned(__ldg(row + position), task.turn)), position, part.ids));
      }
      more = __any_sync(whole_warp, pending != 0);
      if (__any_sync(whole_warp, selected.full() || (last && !more))) selected.merge();
    }
  }

  selected.for_each([&](int rank, const Key& key) {
    part.best[rank] = __ldg(row + key.position());
    part.best_ids[rank] = part.ids.at(key.position());
  });
}

template <Ties ties, int Capacity>
void launch_select_rows(cudaStream_t stream, const SelectionTask& task) {
  const std::size_t blocks = (task.rows * task.parts + tuning::warps_per_block - 1) / tuning::warps_per_block;
  launch(select_rows<typename KeyOf<ties>::Type, Capacity>, dim3(static_cast<unsigned>(blocks)),
         dim3(tuning::warps_per_block * warp_lanes), 0, stream, task);
}

}  // namespace nearwise::gpu
