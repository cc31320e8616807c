#include "backend/cuda/kernels/codes/search_codes.h"

#include <algorithm>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/quantizer.h"
#include "backend/cuda/warp/code_search.cuh"

namespace nearwise::gpu {
namespace {

constexpr unsigned max_warps = tuning::searching_warps;

// One warp per row; whole warps exit together. Eight resident blocks leave 64 registers per thread; without
// the bound the compiler spills two registers on some architectures.
__global__ void __launch_bounds__(max_warps* warp_lanes, 8) search_codes(SearchCodesTask task) {
  const std::uint32_t warp = threadIdx.x / warp_lanes;
  const std::uint32_t row = blockIdx.x * (blockDim.x / warp_lanes) + warp;
  if (row >= task.count) return;
  CodeSearch search(task, row, dynamic_shared<uint4>() + warp * task.books * warp_lanes);
  if (!task.starts) search.load();
  // The first pass is the start, so that the steps are compiled once: two copies would not fit into
  // registers.
  std::uint32_t iteration = task.first_iteration;
  for (bool is_start = true; is_start || iteration < task.end_iteration; is_start = false) {
    if (!is_start && iteration != 0) search.perturb(iteration);
    if (!is_start || task.starts) search.descend(is_start);
    search.accept(is_start);
    if (!is_start) ++iteration;
  }
  search.store();
}

}  // namespace

void launch_search_codes(cudaStream_t stream, const SearchCodesTask& task) {
  if (task.count == 0) return;
  const std::size_t warp_bytes = std::size_t{task.books} * warp_lanes * sizeof(uint4);
  const auto warps =
      static_cast<unsigned>(std::clamp<std::size_t>(default_shared_bytes / warp_bytes, 1, max_warps));
  launch(search_codes, dim3((task.count + warps - 1) / warps), dim3(warps * warp_lanes), warps * warp_bytes,
         stream, task);
}

}  // namespace nearwise::gpu
