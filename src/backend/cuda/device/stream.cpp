#include "backend/cuda/device/stream.h"

#include <utility>

#include "backend/cuda/device/blas.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/operations.h"

namespace nearwise::gpu {

CudaStream::CudaStream(Context::State& state) : Stream(state) {}

CudaStream::CudaStream(Context::State& state, std::shared_ptr<StreamSet> set, std::size_t number)
    : Stream(state), set_(std::move(set)), number_(number) {}

CudaStream::~CudaStream() { settle(); }

StreamSet& CudaStream::set() const {
  if (!set_) set_ = acquire_streams(ordinal());
  return *set_;
}

const std::shared_ptr<const StreamHandle>& CudaStream::shared() const {
  const auto& stream = set().stream(number_);
  may_have_work_ = true;
  return stream;
}

const Blas& CudaStream::blas(std::uint64_t score_bytes, std::uint64_t reserved_bytes) {
  if (!blas_)
    blas_ = std::make_unique<const Blas>(*this, set().blas(), parse_encoding(context.options.isa),
                                         score_bytes, reserved_bytes);
  return *blas_;
}

CudaStream& CudaStream::second_stream() {
  if (!second_stream_) {
    static_cast<void>(set());
    second_stream_.reset(new CudaStream(context, set_, number_ + 1));
  }
  return *second_stream_;
}

void CudaStream::synchronize(const char* operation) const {
  const DeviceScope scope(ordinal());
  check(cudaStreamSynchronize(handle()), operation);
  set_->forget_copies(number_);
  may_have_work_ = false;
}

void CudaStream::settle() const noexcept {
  if (!may_have_work_) return;
  ignore(cudaStreamSynchronize(set_->stream(number_)->stream));
  set_->forget_copies(number_);
  may_have_work_ = false;
}

std::uintptr_t stream_handle(Stream& stream) {
  return reinterpret_cast<std::uintptr_t>(cuda_stream(stream).handle());
}

void wait_for_stream(Stream& stream, std::uintptr_t handle) {
  const DeviceScope scope(cuda_stream(stream).ordinal());
  // DLPack and the CUDA array interface use CUDA's own handle values for the default streams.
  check(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(handle)), "waiting for a stream");
}

}  // namespace nearwise::gpu
