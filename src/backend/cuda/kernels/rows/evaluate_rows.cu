#include "backend/cuda/kernels/rows/evaluate_rows.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/pair_key.cuh"

namespace nearwise::gpu {
namespace {

constexpr int group = sum_group;  // threads per pair
constexpr int pairs_per_block = 16;

template <typename T>
__global__ void evaluate_rows(EvaluateTask task) {
  const std::uint32_t lane = threadIdx.x % group;
  const std::size_t number = std::size_t{blockIdx.x} * pairs_per_block + threadIdx.x / group;
  const bool in_range = number < task.pairs;
  // All lanes take part in the sums: threads without a pair repeat the last one.
  const std::size_t pair = in_range ? number : task.pairs - 1;
  const std::size_t slot = task.slots != nullptr ? task.slots[pair] : pair;
  std::size_t row = slot % task.columns;
  if (task.slots != nullptr) row = task.row_indices != nullptr ? task.row_indices[pair] : pair;
  const float* const query = task.queries + slot / task.columns * task.dim;
  const T* const elements = reinterpret_cast<const T*>(task.rows + row * task.stride_bytes);

  const float key = pair_key(task.metric, query, elements, task.dim, lane);
  if (in_range && lane == 0) task.keys[slot] = key;
}

}  // namespace

void launch_evaluate_rows(cudaStream_t stream, ElementType type, const EvaluateTask& task) {
  if (task.pairs == 0) return;
  const auto blocks = static_cast<unsigned>((task.pairs + pairs_per_block - 1) / pairs_per_block);
  visit_element_type(type, [&](auto tag) {
    launch(evaluate_rows<decltype(tag)>, dim3(blocks), dim3(pairs_per_block * group), 0, stream, task);
  });
}

}  // namespace nearwise::gpu
