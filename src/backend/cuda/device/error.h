// CUDA's status codes become nearwise::Error, naming the operation and the device.
#pragma once

#include <cuda_runtime_api.h>

namespace nearwise::gpu {

// The device that an error is said of, where that is not the calling thread's current one.
inline constexpr int current_device = -1;

[[noreturn]] void throw_error(cudaError_t status, const char* operation, int ordinal);

// Throws Error unless `status` is cudaSuccess: out_of_memory where memory is short, device otherwise. A failed kernel
// shows at the next call that waits, whichever that is.
inline void check(cudaError_t status, const char* operation, int ordinal = current_device) {
  if (status != cudaSuccess) [[unlikely]]
    throw_error(status, operation, ordinal);
}

// For destructors: what fails there has been reported by the call that waited, or the process is ending. Errors stay in
// the thread until they are fetched, and the application's next look is not meant for ours.
inline void ignore(cudaError_t status) noexcept {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace nearwise::gpu
