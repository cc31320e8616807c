// Error in a kernel or a call, found while queued work runs. The runtime converts it to a CUDA error code.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace cuda_emulation {

class Failure : public std::runtime_error {
 public:
  Failure(cudaError_t status, const std::string& message) : std::runtime_error(message), status_(status) {}
  cudaError_t status() const { return status_; }

 private:
  cudaError_t status_;
};

}  // namespace cuda_emulation
