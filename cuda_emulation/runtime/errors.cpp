// Names and descriptions of the CUDA errors that the emulated device returns.
#include <array>
#include <string>

#include "cuda_emulation/runtime/state.h"

namespace {

struct Description {
  cudaError_t status;
  const char* name;
  const char* text;
};

constexpr std::array descriptions = {
    Description{cudaSuccess, "cudaSuccess", "no error"},
    Description{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    Description{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    Description{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
                "invalid configuration argument"},
    Description{cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    Description{cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
                "invalid copy direction for memcpy"},
    Description{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
                "CUDA driver version is insufficient for CUDA runtime version"},
    Description{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    Description{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    Description{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    Description{cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
                "an illegal memory access was encountered"},
    Description{cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
                "too many resources requested for launch"},
    Description{cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    Description{cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    Description{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    Description{cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge",
                "too many blocks in cooperative launch"},
};

const Description* find(cudaError_t status) {
  for (const Description& description : descriptions)
    if (description.status == status) return &description;
  return nullptr;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t status) {
  const Description* const found = find(status);
  return found == nullptr ? "unrecognized error code" : found->name;
}

// Appends the emulated device's finding to CUDA's description.
const char* cudaGetErrorString(cudaError_t status) {
  const cuda_emulation::RuntimeLock lock;
  static thread_local std::string text;
  const Description* const found = find(status);
  text = found == nullptr ? "unrecognized error code" : found->text;
  const cuda_emulation::Runtime& state = cuda_emulation::runtime();
  if (status != cudaSuccess && status == state.failure) text += ": " + state.report;
  return text.c_str();
}

}  // extern "C"
