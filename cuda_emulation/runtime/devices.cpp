// Device properties: limits of compute capability 9.0, with little memory and few multiprocessors.
#include <cuda_runtime_api.h>

#include <cstring>

#include "cuda_emulation/runtime/state.h"

using namespace cuda_emulation;

namespace {

constexpr int compute_major = 9;
constexpr int compute_minor = 0;
constexpr int multiprocessors = 4;
constexpr int threads_per_block = 1024;
constexpr int shared_bytes_per_block = 48 * 1024;
constexpr int max_shared_bytes_per_block = 227 * 1024;

bool is_device(int device) { return device >= 0 && device < static_cast<int>(runtime().devices.size()); }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const RuntimeLock lock;
  if (const cudaError_t status = call_error("cudaGetDeviceProperties")) return finish(status);
  if (!is_device(device)) return finish(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "emulated device");
  properties->totalGlobalMem = runtime().devices[static_cast<std::size_t>(device)].capacity;
  properties->sharedMemPerBlock = shared_bytes_per_block;
  properties->sharedMemPerBlockOptin = max_shared_bytes_per_block;
  properties->sharedMemPerMultiprocessor = max_shared_bytes_per_block + 1024;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = threads_per_block;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = threads_per_block;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->multiProcessorCount = multiprocessors;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->major = compute_major;
  properties->minor = compute_minor;
  properties->memoryPoolsSupported = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const RuntimeLock lock;
  if (const cudaError_t status = call_error("cudaDeviceGetAttribute")) return finish(status);
  if (!is_device(device)) return finish(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = compute_major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = compute_minor; break;
    case cudaDevAttrMultiProcessorCount: *value = multiprocessors; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = threads_per_block; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = shared_bytes_per_block; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = max_shared_bytes_per_block; break;
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    default: return finish(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

// Kernels are compiled for the CPU, and for no PTX.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaFuncGetAttributes")) return finish(status);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->binaryVersion = 10 * compute_major + compute_minor;
  attributes->maxThreadsPerBlock = threads_per_block;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemGetInfo")) return finish(status);
  const Device& device = runtime().devices[static_cast<std::size_t>(current_device())];
  *total_bytes = device.capacity;
  *free_bytes = device.capacity - device.used;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaDeviceSynchronize")) return finish(status);
  const cudaError_t status = run_device(current_device());
  count_synchronisation(current_device());
  return finish(status);
}

}  // extern "C"
