#include "backend/cuda/kernels/evaluate_rows.h"

#include "backend/cuda/gpu.h"
#include "backend/cuda/warp/group_sum.cuh"
#include "core/convert.h"
#include "core/distance.h"

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

  double sum = 0;
  double query_norm = 0;
  double row_norm = 0;
  if (is_euclidean(task.metric)) {
    for (std::uint32_t i = lane; i < task.dim; i += group) {
      const double difference = static_cast<double>(query[i]) - static_cast<double>(to_float(row[i]));
      sum += difference * difference;
    }
  } else {
    for (std::uint32_t i = lane; i < task.dim; i += group) {
      const double x = query[i];
      const double y = to_float(row[i]);
      sum += x * y;
      query_norm += x * x;
      row_norm += y * y;
    }
  }
  sum = group_sum(sum);
  query_norm = group_sum(query_norm);
  row_norm = group_sum(row_norm);
  if (there && lane == 0)
    task.keys[slot] = sort_key(task.metric, reported(task.metric, sum, query_norm, row_norm));
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
