// Stream-ordered device memory, counted in the context's budget.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "backend/cuda/device/stream.h"
#include "core/memory.h"

namespace nearwise::gpu {

// Bytes of the budget that an allocation of `size` elements takes.
std::size_t device_bytes(std::size_t size, std::size_t element_bytes);

// Throws Error(out_of_memory) if the device is out of memory.
void* allocate_on_stream(const StreamHandle& stream, std::size_t bytes, const char* operation);

// Uninitialised memory for `size` elements, usable by work queued on the stream from now on. Freed in stream
// order: other streams must have finished using it.
template <typename T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceBuffer() = default;
  DeviceBuffer(const CudaStream& stream, std::size_t size, const char* operation)
      : DeviceBuffer(stream, stream.budget(), size, operation) {}
  // On another budget than the context's.
  DeviceBuffer(const CudaStream& stream, MemoryBudget& budget, std::size_t size, const char* operation)
      : reservation_(budget, device_bytes(size, sizeof(T))),
        stream_(stream.shared()),
        data_(size == 0
                  ? nullptr
                  : static_cast<T*>(allocate_on_stream(*stream_, device_bytes(size, sizeof(T)), operation))),
        size_(size) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : reservation_(std::move(other.reservation_)),
        stream_(std::move(other.stream_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(reservation_, other.reservation_);
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) stream_->pool.free(data_, device_bytes(size_, sizeof(T)), stream_->stream);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Reservation reservation_;
  std::shared_ptr<const StreamHandle> stream_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// In stream order, through pinned memory. The host's memory may be reused when the call returns: CUDA does
// not promise that of copies from pageable memory.
template <typename T>
void copy_to_device(const CudaStream& stream, std::span<const T> from, T* to, const char* operation) {
  if (from.empty()) return;
  stream.pinned(operation).send(
      stream.handle(),
      {reinterpret_cast<const std::byte*>(from.data()), from.size_bytes(), from.size_bytes(), 1},
      reinterpret_cast<std::byte*>(to), operation);
}

}  // namespace nearwise::gpu
