#include "backend/cuda/device/error.h"

#include <string>

#include "nearwise/error.h"

namespace nearwise::gpu {

void throw_error(cudaError_t status, const char* operation, int ordinal) {
  const bool known = ordinal != current_device || cudaGetDevice(&ordinal) == cudaSuccess;
  // Clears the thread's sticky error, which would otherwise be reported by the next call.
  static_cast<void>(cudaGetLastError());
  const std::string device = known ? "cuda:" + std::to_string(ordinal) : "cuda";
  throw Error(status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device,
              std::string(operation) + ": " + device + ": " + cudaGetErrorString(status) + " (" +
                  cudaGetErrorName(status) + ")");
}

}  // namespace nearwise::gpu
