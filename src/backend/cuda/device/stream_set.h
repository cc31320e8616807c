// What an operation takes from its device besides memory: two streams, a cuBLAS handle and pinned memory.
#pragma once

#include <cublas_v2.h>

#include <array>
#include <cstddef>
#include <memory>

#include "backend/cuda/device/error.h"
#include "backend/cuda/device/memory_pool.h"
#include "backend/cuda/device/pinned_memory.h"

namespace nearwise::gpu {

// Owns a CUDA stream. Shared by a StreamSet and the buffers allocated on it, which may outlive it.
class StreamHandle {
 public:
  explicit StreamHandle(int ordinal);
  ~StreamHandle() { ignore(cudaStreamDestroy(stream)); }
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

  const int ordinal;
  MemoryPool& pool;
  cudaStream_t stream = nullptr;
};

// Streams, handle and memory are made at their first use. One operation has a set at a time: cuBLAS handles
// are not for several threads.
class StreamSet {
 public:
  explicit StreamSet(int ordinal) : ordinal_(ordinal) {}
  ~StreamSet();
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  int ordinal() const { return ordinal_; }
  const std::shared_ptr<const StreamHandle>& stream(std::size_t number);
  // Of the stream's copies.
  PinnedMemory& pinned(std::size_t number, const char* operation);
  // All copies of a stream have been made.
  void forget_copies(std::size_t number) {
    if (pinned_[number]) pinned_[number]->forget_copies();
  }
  // For one stream at a time.
  cublasHandle_t blas();

 private:
  const int ordinal_;
  std::array<std::shared_ptr<const StreamHandle>, 2> streams_;
  std::array<std::unique_ptr<PinnedMemory>, 2> pinned_;
  cublasHandle_t blas_ = nullptr;
};

// A set of the device that is not in use, the latest one, or a new one. It returns to the process's pool with
// the last owner, whose queued work must have finished. Making a set takes milliseconds (adr/0018).
std::shared_ptr<StreamSet> acquire_streams(int ordinal);

// Frees sets that are not in use. For leak checks in tests.
void release_idle_streams();

}  // namespace nearwise::gpu
