#include "backend/cuda/kernels/codes/additive_rows.h"

#include "backend/cuda/device/gpu.h"
#include "codes/additive_draws.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = 128;

// One thread per row: hash and sum of squares are sequential, as on the CPU. Cheap compared with the search.
__global__ void additive_rows(AdditiveRowsTask task) {
  const std::uint32_t row = blockIdx.x * threads + threadIdx.x;
  if (row >= task.count) return;
  const float* const elements = task.rows + std::size_t{row} * task.dim;
  float* const values = task.values + std::size_t{row} * task.width;
  std::uint64_t key = task.dim;
  double squares = 0;
  for (std::uint32_t i = 0; i < task.dim; ++i) {
    const float element = elements[i];
    key = with_element(key, element);
    const auto value = static_cast<float>((static_cast<double>(element) - task.offset[i]) * task.unit);
    squares += static_cast<double>(value) * static_cast<double>(value);
    values[i] = value;
  }
  for (std::uint32_t i = task.dim; i < task.width; ++i) values[i] = 0;
  task.keys[row] = key;
  task.shrinks[row] = squares <= task.longest * task.longest ? 1.0 : task.longest / sqrt(squares);
}

}  // namespace

void launch_additive_rows(cudaStream_t stream, const AdditiveRowsTask& task) {
  if (task.count == 0) return;
  launch(additive_rows, dim3((task.count + threads - 1) / threads), dim3(threads), 0, stream, task);
}

}  // namespace nearwise::gpu
