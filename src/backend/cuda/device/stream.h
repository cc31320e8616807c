// Stream of the CUDA backend: a CUDA stream on the context's device and its memory pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "backend/cuda/device/error.h"
#include "backend/cuda/device/stream_set.h"

namespace nearwise::gpu {

class Blas;

// Takes a set of streams from the device's pool at its first use, so that one that only answers questions
// costs nothing.
class CudaStream : public Stream {
 public:
  explicit CudaStream(Context::State& state);
  // Synchronises if work may be queued: it may use memory that is freed next.
  ~CudaStream() override;

  // A second stream of the same context, for concurrent work.
  CudaStream& second_stream();

  // cuBLAS for the encoding chosen by the context's isa. At its first use takes a workspace from the budget:
  // what products with `score_bytes` of results can use, if sixteen times as much is available in addition to
  // `reserved_bytes`, else the smallest.
  const Blas& blas(std::uint64_t score_bytes, std::uint64_t reserved_bytes = 0);

  int ordinal() const { return context.place.ordinal; }
  // Work may be queued from now on.
  cudaStream_t handle() const { return shared()->stream; }
  const std::shared_ptr<const StreamHandle>& shared() const;
  // For small copies. Throws Error(out_of_memory), naming `operation`, if there is none.
  PinnedMemory& pinned(const char* operation) const { return set().pinned(number_, operation); }
  MemoryBudget& budget() const { return *context.budget; }

  // Waits for all queued work and throws its errors, naming `operation`.
  void synchronize(const char* operation) const;
  // For destructors, after an error perhaps: waits if work may be queued.
  void settle() const noexcept;

 private:
  CudaStream(Context::State& state, std::shared_ptr<StreamSet> set, std::size_t number);

  StreamSet& set() const;

  mutable std::shared_ptr<StreamSet> set_;
  const std::size_t number_ = 0;  // of the set's streams
  mutable bool may_have_work_ = false;
  std::unique_ptr<CudaStream> second_stream_;
  std::unique_ptr<const Blas> blas_;
};

// Operations of this backend only receive its own streams.
inline CudaStream& cuda_stream(Stream& stream) { return static_cast<CudaStream&>(stream); }
inline const CudaStream& cuda_stream(const Stream& stream) { return static_cast<const CudaStream&>(stream); }

}  // namespace nearwise::gpu
