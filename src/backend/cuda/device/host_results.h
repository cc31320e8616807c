// Results on their way to the host: copied together, with one wait.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "backend/cuda/device/stream.h"

namespace nearwise::gpu {

// Through pinned memory as far as it has room; what does not fit is copied to its place, which waits for it.
// A stream has one of these at a time.
class HostResults {
 public:
  explicit HostResults(const CudaStream& stream) : stream_(stream) {}

  // Queues the copy. `to` is written by finish() at the latest.
  template <typename T>
  void add(const T* from, std::span<T> to, const char* operation) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (to.empty()) return;
    std::byte* into = reinterpret_cast<std::byte*>(to.data());
    if (to.size_bytes() <= PinnedMemory::results_bytes - used_bytes_) {
      std::byte* const pinned = stream_.pinned(operation).results() + used_bytes_;
      parts_.push_back({pinned, into, to.size_bytes()});
      used_bytes_ += to.size_bytes();
      into = pinned;
    }
    check(cudaMemcpyAsync(into, from, to.size_bytes(), cudaMemcpyDeviceToHost, stream_.handle()), operation);
  }

  // Waits for the stream. Results are in their places.
  void finish(const char* operation) {
    stream_.synchronize(operation);
    for (const Part& part : parts_) std::memcpy(part.to, part.from, part.bytes);
    parts_.clear();
    used_bytes_ = 0;
  }

 private:
  struct Part {
    const std::byte* from;
    std::byte* to;
    std::size_t bytes;
  };

  const CudaStream& stream_;
  std::vector<Part> parts_;
  std::size_t used_bytes_ = 0;
};

// One result, with a wait.
template <typename T>
void fetch(const CudaStream& stream, const T* from, std::span<T> to, const char* operation) {
  HostResults copies(stream);
  copies.add(from, to, operation);
  copies.finish(operation);
}

}  // namespace nearwise::gpu
