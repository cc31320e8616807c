// The one header that kernels and their launches include: CUDA itself, or the emulated device of the tests.
//
// nvcc sees real CUDA. Any other compiler is building the tests on the emulated device (tests/cuda_emulation), which
// runs the same sources as fibers and checks them; its README has the rules that kernels keep.
#pragma once

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#else
#include "cuda_emulation/device.h"
#endif

#include <cstddef>
#include <utility>

#include "backend/cuda/device/error.h"

namespace nearwise::gpu {

#if defined(__CUDACC__)

// The block's dynamic shared memory, aligned for vectors of four floats.
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

#else

using cuda_emulation::dynamic_shared;
using cuda_emulation::start_kernel;

#endif

// What a kernel may use without being asked; more is an attribute of the kernel.
inline constexpr std::size_t default_shared_bytes = 48 * 1024;

// Queues the kernel on the stream. Throws Error where it cannot start: a grid, a block or shared memory that the
// device does not offer. Arguments are converted to the kernel's parameters here, on the host.
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
