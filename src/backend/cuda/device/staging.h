// Staging buffer: copies host rows to the device through pinned memory, so that copies are asynchronous.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/cuda/device/stream.h"
#include "nearwise/matrix.h"

namespace nearwise::gpu {

class Event {
 public:
  explicit Event(const CudaStream& stream);
  ~Event() { ignore(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Double buffer: the context's threads fill one half while the other is copied. Buffers are kept by the
// process, since pinning and unpinning are slow and synchronise the device; no memory budget counts them.
class Staging {
 public:
  Staging(const CudaStream& stream, const char* operation);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Queues the copy of rows, stored contiguously, to `out` on the device. They must fit into half of the
  // buffer.
  void send(const RowsView& rows, std::byte* out);

 private:
  const CudaStream& stream_;
  const char* const operation_;
  const Event copied_[2];
  std::byte* const buffer_;
  std::size_t sent_ = 0;
};

// Frees unused staging buffers. For leak checks in tests.
void release_staging_buffers();

}  // namespace nearwise::gpu
