// The only header through which kernels and launches include CUDA: its runtime, or the emulated device, which
// runs the same sources as fibers and checks them (cuda_emulation; its README has the rules for kernels).
#pragma once

#if defined(CUDA_EMULATION)
#include "cuda_emulation/device.h"
#else
#include <cuda_runtime.h>
#endif

#include <cstddef>
#include <utility>

#include "backend/cuda/device/error.h"

namespace nearwise::gpu {

#if defined(CUDA_EMULATION)

using cuda_emulation::dynamic_shared;
using cuda_emulation::start_kernel;

#else

// The block's dynamic shared memory, aligned for float4.
template <typename T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char nearwise_dynamic_shared[];
  return reinterpret_cast<T*>(nearwise_dynamic_shared);
}

template <typename... Parameters>
cudaError_t start_kernel(const cudaLaunchConfig_t& config, void (*kernel)(Parameters...),
                         Parameters... arguments) {
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

#endif

// Dynamic shared memory that needs no kernel attribute.
inline constexpr std::size_t default_shared_bytes = 48 * 1024;

// Launches the kernel on the stream. Throws Error if the device does not support the grid, block or shared
// memory. Arguments are converted to the kernel's parameter types on the host.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
  if (shared_bytes > default_shared_bytes)
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          "kernel launch");
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check(start_kernel<Parameters...>(config, kernel,
                                    static_cast<Parameters>(std::forward<Arguments>(arguments))...),
        "kernel launch");
}

}  // namespace nearwise::gpu
