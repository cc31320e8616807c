// Memory pool of a device, one per device and process, so that calls reuse freed memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace nearwise::gpu {

// CUDA's stream-ordered pool, which keeps what is live and a margin of freed memory: CUDA compares the
// release threshold with all that a pool holds, so it follows the live bytes. Thread-safe.
class MemoryPool {
 public:
  explicit MemoryPool(int ordinal);

  void* allocate(std::size_t bytes, cudaStream_t stream, const char* operation);
  void free(void* memory, std::size_t bytes, cudaStream_t stream) noexcept;

 private:
  // The release threshold, if it is to change.
  cudaError_t follow_live_bytes();

  cudaMemPool_t pool_ = nullptr;
  std::mutex mutex_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t threshold_ = 0;
};

// Created on first use, lives until the process ends. Separate from the device's default pool, which belongs
// to the application and other libraries.
MemoryPool& memory_pool(int ordinal);

}  // namespace nearwise::gpu
