#include "backend/cuda/device/stream.h"

#include "backend/cuda/device/blas.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/memory_pool.h"
#include "backend/cuda/operations.h"

namespace nearwise::gpu {

StreamHandle::StreamHandle(int device) : ordinal(device), pool(memory_pool(device)) {
  const DeviceScope scope(ordinal);
  // Does not synchronise with the legacy default stream, which belongs to the application.
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "opening a stream");
}

CudaStream::CudaStream(Context::State& state)
    : Stream(state), shared_(std::make_shared<const StreamHandle>(state.place.ordinal)) {}

CudaStream::~CudaStream() { ignore(cudaStreamSynchronize(handle())); }

const Blas& CudaStream::blas() {
  if (!blas_) blas_ = std::make_unique<const Blas>(*this, parse_encoding(context.options.isa));
  return *blas_;
}

CudaStream& CudaStream::second_stream() {
  if (!second_stream_) second_stream_ = std::make_unique<CudaStream>(context);
  return *second_stream_;
}

void CudaStream::synchronize(const char* operation) const {
  const DeviceScope scope(ordinal());
  check(cudaStreamSynchronize(handle()), operation);
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
