#include "backend/cuda/kernels/codes/search_codes.h"

#include <algorithm>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/quantizer.h"
#include "backend/cuda/warp/code_search.cuh"

namespace nearwise::gpu {
namespace {

constexpr unsigned most_warps = tuning::searching_warps;

// A warp per row. Whole warps exit together. Eight blocks of a multiprocessor have 64 registers for each thread: left alone, the
// compiler of some architectures takes fewer and puts two into local memory.
__global__ void __launch_bounds__(most_warps* warp_lanes, 8) search_codes(SearchCodesTask task) {
  const std::uint32_t warp = threadIdx.x / warp_lanes;
  const std::uint32_t row = blockIdx.x * (blockDim.x / warp_lanes) + warp;
  if (row >= task.count) return;
  CodeSearch search(task, row, dynamic_shared<uint4>() + warp * task.books * warp_lanes);
  if (!task.starts) search.load();
  // The first time around is the start, so that there is one copy of the steps: two would not fit into registers.
  std::uint32_t iteration = task.first_iteration;
  for (bool begins = true; begins || iteration < task.end_iteration; begins = false) {
    if (!begins && iteration != 0) search.perturb(iteration);
    if (!begins || task.starts) search.descend(begins);
    search.accept(begins);
    if (!begins) ++iteration;
  }
  search.store();
}

}  // namespace

void launch_search_codes(cudaStream_t stream, const SearchCodesTask& task) {
  if (task.count == 0) return;
  const std::size_t warp_bytes = std::size_t{task.books} * warp_lanes * sizeof(uint4);
  const auto warps =
      static_cast<unsigned>(std::clamp<std::size_t>(default_shared_bytes / warp_bytes, 1, most_warps));
  launch(search_codes, dim3((task.count + warps - 1) / warps), dim3(warps * warp_lanes), warps * warp_bytes,
         stream, task);
}

}  // namespace nearwise::gpu
