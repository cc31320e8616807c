// Stream of the CUDA backend: a CUDA stream on the context's device and its memory pool.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cuda/device/error.h"

namespace nearwise::gpu {

class Blas;

// Owns a CUDA stream. Shared by a CudaStream and the buffers allocated on it, which may outlive it.
class StreamHandle {
 public:
  explicit StreamHandle(int ordinal);
  ~StreamHandle() { ignore(cudaStreamDestroy(stream)); }
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

  const int ordinal;
  const cudaMemPool_t pool;
  cudaStream_t stream = nullptr;
};

class CudaStream : public Stream {
 public:
  explicit CudaStream(Context::State& state);
  // Synchronises: queued work may use memory that is freed next.
  ~CudaStream() override;

  // A second stream of the same context, for concurrent work. Created on first use.
  CudaStream& second_stream();

  // cuBLAS for the encoding chosen by the context's isa. Created on first use, which is slow.
  const Blas& blas();

  int ordinal() const { return shared_->ordinal; }
  cudaStream_t handle() const { return shared_->stream; }
  const std::shared_ptr<const StreamHandle>& shared() const { return shared_; }
  MemoryBudget& budget() const { return *context.budget; }

  // Waits for all queued work and throws its errors, naming `operation`.
  void synchronize(const char* operation) const;

 private:
  const std::shared_ptr<const StreamHandle> shared_;
  std::unique_ptr<CudaStream> second_stream_;
  std::unique_ptr<const Blas> blas_;
};

// Operations of this backend only receive its own streams.
inline CudaStream& cuda_stream(Stream& stream) { return static_cast<CudaStream&>(stream); }
inline const CudaStream& cuda_stream(const Stream& stream) { return static_cast<const CudaStream&>(stream); }

}  // namespace nearwise::gpu
