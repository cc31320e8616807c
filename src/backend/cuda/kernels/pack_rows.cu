#include "backend/cuda/kernels/pack_rows.h"

#include "backend/cuda/gpu.h"
#include "core/convert.h"

namespace nearwise::gpu {
namespace {

constexpr int lanes = 32;
constexpr int warps_per_block = 4;  // a row each
constexpr float smallest_normal = 0x1p-126F;

__device__ __forceinline__ double warp_sum(double value) {
  for (int step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, step);
  return value;
}

// Products may flush denormals to zero: packed rows have none, and what that loses is measured.
__device__ __forceinline__ float without_denormals(float value) {
  return fabsf(value) < smallest_normal ? 0.0F : value;
}

template <typename T>
__global__ void pack_rows(PackTask task) {
  const std::uint32_t lane = threadIdx.x % lanes;
  const std::size_t number = std::size_t{blockIdx.x} * warps_per_block + threadIdx.x / lanes;
  if (number >= task.count) return;
  const T* const row = reinterpret_cast<const T*>(task.rows + number * task.stride_bytes);
  float* const out = task.out + number * task.width;

  double length = 1;
  if (task.normalise) {
    double squares = 0;
    for (std::uint32_t i = lane; i < task.dim; i += lanes) {
      const double x = to_float(row[i]);
      squares += x * x;
    }
    length = sqrt(warp_sum(squares));
  }

  bool finite = true;
  double squares = 0;
  double lost = 0;
  for (std::uint32_t i = lane; i < task.dim; i += lanes) {
    const float x = to_float(row[i]);
    finite = finite && x - x == 0;
    float moved = task.centre != nullptr ? x - task.centre[i] : x;
    if (task.normalise && length > 0) moved = static_cast<float>(x / length);
    const float kept = without_denormals(moved);
    if (kept != moved) lost += static_cast<double>(moved) * moved;
    squares += static_cast<double>(kept) * kept;
    out[i] = kept;
  }
  squares = warp_sum(squares);
  lost = warp_sum(lost);
  for (std::uint32_t i = task.dim + lane; i < task.width; i += lanes) {
    float value = 0;
    if (i == task.dim && task.bias == BiasColumn::minus_one) value = -1;
    if (i == task.dim && task.bias == BiasColumn::half_square)
      value = without_denormals(static_cast<float>(squares / 2));
    out[i] = value;
  }

  finite = __all_sync(0xFFFFFFFFU, finite) != 0;
  if (lane != 0) return;
  const double norm = sqrt(squares);
  const double residual = sqrt(lost);
  if (task.lengths != nullptr) task.lengths[number] = {norm, residual};
  atomicMax(&task.summary->longest_norm, static_cast<unsigned long long>(__double_as_longlong(norm)));
  atomicMax(&task.summary->longest_residual, static_cast<unsigned long long>(__double_as_longlong(residual)));
  if (!finite)
    atomicMin(&task.summary->first_bad_row, static_cast<unsigned long long>(task.first_row + number));
}

}  // namespace

void launch_pack_rows(cudaStream_t stream, ElementType type, const PackTask& task) {
  if (task.count == 0) return;
  const auto blocks = static_cast<unsigned>((task.count + warps_per_block - 1) / warps_per_block);
  visit_element_type(type, [&](auto tag) {
    launch(pack_rows<decltype(tag)>, dim3(blocks), dim3(warps_per_block * lanes), 0, stream, task);
  });
}

}  // namespace nearwise::gpu
