// Pinned host memory of a stream, for small copies in both directions: they need no wait one by one, and the
// host may reuse its own memory at once.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>

#include "backend/cuda/device/error.h"

namespace nearwise::gpu {

// A matrix of bytes on the host.
struct HostRows {
  const std::byte* data = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 0;
};

class PinnedMemory {
 public:
  PinnedMemory(int ordinal, const char* operation);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Queues the copy of rows to `to` on the device, contiguous. `from` may be changed when it returns. Waits
  // only if more is under way than the memory holds.
  void send(cudaStream_t stream, const HostRows& from, std::byte* to, const char* operation);

  // Memory for results that are copied to the host, of results_bytes. For one owner at a time.
  std::byte* results() { return memory_ + 2 * half_bytes; }
  static constexpr std::size_t results_bytes = std::size_t{256} << 10;

  // All copies have been made.
  void forget_copies();

 private:
  static constexpr std::size_t half_bytes = std::size_t{256} << 10;

  void next_half(cudaStream_t stream, const char* operation);

  const int ordinal_;
  std::byte* memory_ = nullptr;             // two halves for what is sent, then the results
  std::array<cudaEvent_t, 2> copied_ = {};  // made when a half is full
  std::array<bool, 2> under_way_ = {};      // copies from the half end with its event
  std::size_t half_ = 0;
  std::size_t used_bytes_ = 0;  // of the half
};

}  // namespace nearwise::gpu
