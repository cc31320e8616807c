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
    if (data_ != nullptr) ignore(cudaFreeAsync(data_, stream_->stream));
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

// In stream order. Pageable host memory may be reused when the call returns.
template <typename T>
void copy_to_device(const CudaStream& stream, std::span<const T> from, T* to, const char* operation) {
  check(cudaMemcpyAsync(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream.handle()),
        operation);
}

// Complete after CudaStream::synchronize.
template <typename T>
void copy_to_host(const CudaStream& stream, const T* from, std::span<T> to, const char* operation) {
  check(cudaMemcpyAsync(to.data(), from, to.size_bytes(), cudaMemcpyDeviceToHost, stream.handle()),
        operation);
}

}  // namespace nearwise::gpu
