#include "backend/cuda/stream.h"

#include "backend/cuda/device_scope.h"
#include "backend/cuda/memory_pool.h"

namespace nearwise::gpu {

StreamHandle::StreamHandle(int device) : ordinal(device), pool(memory_pool(device)) {
  const DeviceScope scope(ordinal);
  // Not ordered with the legacy default stream: work of the application there is not ours to wait for.
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "opening a stream");
}

CudaStream::CudaStream(Context::State& state)
    : Stream(state), shared_(std::make_shared<const StreamHandle>(state.place.ordinal)) {}

CudaStream& CudaStream::beside() {
  if (!beside_) beside_ = std::make_unique<CudaStream>(context);
  return *beside_;
}

void CudaStream::synchronize(const char* operation) const {
  const DeviceScope scope(ordinal());
  check(cudaStreamSynchronize(handle()), operation);
}

}  // namespace nearwise::gpu
