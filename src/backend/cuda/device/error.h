// Converts CUDA status codes to nearwise::Error with the operation and the device.
#pragma once

#include <cuda_runtime_api.h>

namespace nearwise::gpu {

// Report the error for the calling thread's current device.
inline constexpr int current_device = -1;

[[noreturn]] void throw_error(cudaError_t status, const char* operation, int ordinal);

// Throws Error unless `status` is cudaSuccess: out_of_memory if memory is exhausted, device otherwise. Errors
// of a kernel are reported by the next synchronising call.
inline void check(cudaError_t status, const char* operation, int ordinal = current_device) {
  if (status != cudaSuccess) [[unlikely]]
    throw_error(status, operation, ordinal);
}

// For destructors: the synchronising call has reported the error, or the process is ending. Clears the
// thread's sticky error, so that the application does not see it.
inline void ignore(cudaError_t status) noexcept {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace nearwise::gpu
