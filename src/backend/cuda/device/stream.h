// The CUDA backend's stream: a CUDA stream on the context's device, and the pool its memory comes from.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cuda/device/error.h"

namespace nearwise::gpu {

class Blas;

// Owns a CUDA stream. Shared by a CudaStream and the buffers allocated on it, which may live longer.
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
  // Waits for what was queued: it may use memory that goes right after.
  ~CudaStream() override;

  // Another stream of the same context, for what is to run beside this one. Made at the first use.
  CudaStream& beside();

  // cuBLAS for the encoding that the context's isa names. Made at the first use, which takes long.
  const Blas& blas();

  int ordinal() const { return shared_->ordinal; }
  cudaStream_t handle() const { return shared_->stream; }
  const std::shared_ptr<const StreamHandle>& shared() const { return shared_; }
  MemoryBudget& budget() const { return *context.budget; }

  // Waits for all that was queued; throws what a kernel of it failed with, naming `operation`.
  void synchronize(const char* operation) const;

 private:
  const std::shared_ptr<const StreamHandle> shared_;
  std::unique_ptr<CudaStream> beside_;
  std::unique_ptr<const Blas> blas_;
};

// Operations of this backend only ever get its own streams.
inline CudaStream& cuda_stream(Stream& stream) { return static_cast<CudaStream&>(stream); }
inline const CudaStream& cuda_stream(const Stream& stream) { return static_cast<const CudaStream&>(stream); }

}  // namespace nearwise::gpu
