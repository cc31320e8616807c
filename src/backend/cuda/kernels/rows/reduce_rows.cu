#include "backend/cuda/kernels/rows/reduce_rows.h"

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/selection.h"
#include "backend/cuda/warp/best_two.cuh"
#include "backend/cuda/warp/load_values.cuh"
#include "backend/cuda/warp/row_part.cuh"

namespace nearwise::gpu {
namespace {

template <typename Key>
__global__ void __launch_bounds__(tuning::warps_per_block* warp_lanes) reduce_rows(SelectionTask task) {
  constexpr int count = tuning::reduced_values_per_lane;
  constexpr std::uint32_t step = count * warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::uint32_t number = blockIdx.x * tuning::warps_per_block + threadIdx.x / warp_lanes;
  if (number >= task.rows * task.parts) return;
  const RowPart part(task, number);

  BestTwo<Key> best;
  // Prefetches the next values.
  float next[count];
  load_values(next, part.values, part.first, part.end, lane);
  for (std::uint32_t first = part.first; first < part.end; first += step) {
    float values[count];
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = oriented(next[i], task.sign_mask);
    if (part.end - first > step) load_values(next, part.values, first + step, part.end, lane);
    bool any = false;
#pragma unroll
    for (int i = 0; i < count; ++i) any = any || best.may_qualify(values[i]);
    if (!any) continue;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const std::uint32_t position = first + static_cast<std::uint32_t>(lane + i * warp_lanes);
      if (position < part.end && best.may_qualify(values[i]))
        best.add(Key::make(image_of(values[i]), position, part.ids));
    }
  }
  best.reduce_lanes();

  if (static_cast<std::uint32_t>(lane) >= task.k) return;
  const std::uint32_t position = lane == 0 ? best.first().position() : best.second().position();
  part.best[lane] = __ldg(part.values + position);
  part.best_ids[lane] = part.ids.at(position);
}

template <Ties ties>
void launch_with(cudaStream_t stream, const SelectionTask& task) {
  const std::size_t blocks = (task.rows * task.parts + tuning::warps_per_block - 1) / tuning::warps_per_block;
  launch(reduce_rows<typename KeyOf<ties>::Type>, dim3(static_cast<unsigned>(blocks)),
         dim3(tuning::warps_per_block * warp_lanes), 0, stream, task);
}

}  // namespace

void launch_reduce_rows(cudaStream_t stream, Ties ties, const SelectionTask& task) {
  const auto start = ties == Ties::positions    ? launch_with<Ties::positions>
                     : ties == Ties::narrow_ids ? launch_with<Ties::narrow_ids>
                                                : launch_with<Ties::wide_ids>;
  start(stream, task);
}

}  // namespace nearwise::gpu
