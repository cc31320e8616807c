// Rows of the host on their way to the device, through pinned memory: copies from other memory stop the host.
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

// Two halves: one is filled by the context's threads while the other is copied. The memory is taken from a few areas that
// the process keeps: pinning and freeing take long, and wait for the device. They are not on any budget.
class Staging {
 public:
  Staging(const CudaStream& stream, const char* operation);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Queues the copy of rows, one after another, to `out` on the device. Together they fit into a half.
  void send(const RowsView& rows, std::byte* out);

 private:
  const CudaStream& stream_;
  const char* const operation_;
  const Event copied_[2];
  std::byte* const area_;
  std::size_t sent_ = 0;
};

// Frees the areas that are not in use: for tests, which look for leaks.
void release_staging_areas();

}  // namespace nearwise::gpu
