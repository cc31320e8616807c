#include "backend/cuda/kernels/rows/evaluate_rows.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/pair_key.cuh"

namespace nearwise::gpu {
namespace {

constexpr int group = sum_group;  // threads of a pair
constexpr int pairs_per_block = 16;

template <typename T>
__global__ void evaluate_rows(EvaluateTask task) {
  const std::uint32_t lane = threadIdx.x % group;
  const std::size_t number = std::size_t{blockIdx.x} * pairs_per_block + threadIdx.x / group;
  const bool there = number < task.pairs;
  // All lanes of a warp meet in the sums: those without a pair look at the last one again.
  const std::size_t pair = there ? number : task.pairs - 1;
  const std::size_t slot = task.slots != nullptr ? task.slots[pair] : pair;
  std::size_t row_number = slot % task.columns;
  if (task.slots != nullptr) row_number = task.row_numbers != nullptr ? task.row_numbers[pair] : pair;
  const float* const query = task.queries + slot / task.columns * task.dim;
  const T* const row = reinterpret_cast<const T*>(task.rows + row_number * task.stride_bytes);

  const float key = pair_key(task.metric, query, row, task.dim, lane);
  if (there && lane == 0) task.keys[slot] = key;
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
