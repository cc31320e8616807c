// CUDA's status codes become nearwise::Error, naming the operation and the device.
#pragma once

#include <cuda_runtime_api.h>

namespace nearwise::gpu {

[[noreturn]] void throw_error(cudaError_t status, const char* operation);

// Throws Error unless `status` is cudaSuccess: out_of_memory where memory is short, device otherwise. The device named
// is the calling thread's current one. A failed kernel shows at the next call that waits, whichever that is.
inline void check(cudaError_t status, const char* operation) {
  if (status != cudaSuccess) [[unlikely]]
    throw_error(status, operation);
}

// For destructors: what fails there has been reported by the call that waited, or the process is ending.
inline void ignore(cudaError_t) noexcept {}

}  // namespace nearwise::gpu
