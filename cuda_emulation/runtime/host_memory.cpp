// Pinned host memory, for asynchronous copies.
#include <cstdlib>

#include "cuda_emulation/runtime/device_memory.h"
#include "cuda_emulation/runtime/state.h"

namespace cuda_emulation {

bool is_pinned_memory(const void* address) {
  const auto after = runtime().pinned.upper_bound(const_cast<char*>(static_cast<const char*>(address)));
  if (after == runtime().pinned.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return address < begin + bytes;
}

}  // namespace cuda_emulation

using namespace cuda_emulation;

extern "C" {

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  const RuntimeLock lock;
  *pointer = nullptr;
  if (const cudaError_t status = device_call_error("cudaHostAlloc")) return finish(status);
  if (bytes == 0) return cudaSuccess;
  if (!may_allocate()) return finish(cudaErrorMemoryAllocation);
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*pointer == nullptr) return finish(cudaErrorMemoryAllocation);
  runtime().pinned[static_cast<char*>(*pointer)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

cudaError_t cudaFreeHost(void* pointer) {
  const RuntimeLock lock;
  count_call("cudaFreeHost");
  if (pointer == nullptr) return finish(runtime().failure);
  static_cast<void>(run_everything());  // includes copies in progress
  count_synchronisation(current_device());
  if (runtime().pinned.erase(static_cast<char*>(pointer)) == 0) return finish(cudaErrorInvalidValue);
  std::free(pointer);
  return finish(runtime().failure);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaPointerGetAttributes")) return finish(status);
  *attributes = {};
  attributes->device = -2;  // as CUDA reports for unregistered memory
  attributes->type = cudaMemoryTypeUnregistered;
  const auto after = runtime().allocations.upper_bound(const_cast<char*>(static_cast<const char*>(pointer)));
  if (is_pinned_memory(pointer)) {
    attributes->type = cudaMemoryTypeHost;
    attributes->device = current_device();
    attributes->hostPointer = const_cast<void*>(pointer);
  } else if (is_device_memory(pointer) && after != runtime().allocations.begin()) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = std::prev(after)->second.device;
    attributes->devicePointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

}  // extern "C"
