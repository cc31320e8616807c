#include "backend/cuda/kernels/rows/widen_rows.h"

#include "backend/cuda/device/gpu.h"
#include "core/convert.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t threads = 256;

template <typename T>
__global__ void widen_rows(const T* elements, std::size_t count, float* out) {
  const std::size_t index = blockIdx.x * threads + threadIdx.x;
  if (index < count) out[index] = to_float(elements[index]);
}

}  // namespace

void launch_widen_rows(cudaStream_t stream, ElementType type, const std::byte* rows, std::size_t count,
                       std::size_t dim, float* out) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count * dim + threads - 1) / threads);
  visit_element_type(type, [&](auto tag) {
    using T = decltype(tag);
    launch(widen_rows<T>, dim3(blocks), dim3(threads), 0, stream, reinterpret_cast<const T*>(rows),
           count * dim, out);
  });
}

const void* widen_rows_kernel() {
  void (*const kernel)(const float*, std::size_t, float*) = widen_rows<float>;
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace nearwise::gpu
