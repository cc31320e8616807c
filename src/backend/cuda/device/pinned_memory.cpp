#include "backend/cuda/device/pinned_memory.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/device/device_scope.h"

namespace nearwise::gpu {

PinnedMemory::PinnedMemory(int ordinal, const char* operation) : ordinal_(ordinal) {
  const DeviceScope scope(ordinal);
  void* memory = nullptr;
  check(cudaMallocHost(&memory, 2 * half_bytes + results_bytes), operation);
  memory_ = static_cast<std::byte*>(memory);
}

PinnedMemory::~PinnedMemory() {
  for (const cudaEvent_t event : copied_)
    if (event != nullptr) ignore(cudaEventDestroy(event));
  ignore(cudaFreeHost(memory_));
}

void PinnedMemory::send(cudaStream_t stream, const HostRows& from, std::byte* to, const char* operation) {
  const DeviceScope scope(ordinal_);
  // Runs of rows that fit, or parts of a row.
  for (std::size_t row = 0, offset = 0; row < from.rows;) {
    if (used_bytes_ == half_bytes) next_half(stream, operation);
    std::byte* const begin = memory_ + half_ * half_bytes + used_bytes_;
    std::size_t taken = 0;
    while (row < from.rows && used_bytes_ + taken < half_bytes) {
      const std::size_t bytes = std::min(from.row_bytes - offset, half_bytes - used_bytes_ - taken);
      std::memcpy(begin + taken, from.data + row * from.stride_bytes + offset, bytes);
      taken += bytes;
      offset += bytes;
      if (offset == from.row_bytes) {
        offset = 0;
        ++row;
      }
    }
    used_bytes_ += taken;
    check(cudaMemcpyAsync(to, begin, taken, cudaMemcpyHostToDevice, stream), operation);
    to += taken;
  }
}

void PinnedMemory::next_half(cudaStream_t stream, const char* operation) {
  if (copied_[half_] == nullptr)
    check(cudaEventCreateWithFlags(&copied_[half_], cudaEventDisableTiming), operation);
  check(cudaEventRecord(copied_[half_], stream), operation);
  under_way_[half_] = true;
  half_ = 1 - half_;
  used_bytes_ = 0;
  if (under_way_[half_]) check(cudaEventSynchronize(copied_[half_]), operation);
  under_way_[half_] = false;
}

void PinnedMemory::forget_copies() {
  under_way_ = {};
  half_ = 0;
  used_bytes_ = 0;
}

}  // namespace nearwise::gpu
