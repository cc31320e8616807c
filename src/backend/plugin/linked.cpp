// Replaces loaded.cpp in builds with the CUDA backend linked in.
#include "backend/cuda_backend.h"
#include "nearwise/cuda_device.h"

namespace nearwise {

const CudaLibrary& cuda_library() {
  static const CudaLibrary library = {.functions = &gpu::cuda_functions()};
  return library;
}

void set_cuda_library(const std::string&) {}

}  // namespace nearwise
