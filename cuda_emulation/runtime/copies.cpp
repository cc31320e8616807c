// Copies and fills, in stream order.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda_emulation/control.h"
#include "cuda_emulation/engine/failure.h"
#include "cuda_emulation/engine/memory.h"
#include "cuda_emulation/runtime/device_memory.h"
#include "cuda_emulation/runtime/state.h"

namespace cuda_emulation {
namespace {

constexpr std::size_t max_pitch = 0x7fff'ffff;  // cudaDeviceProp::memPitch of all current devices

// `rows` rows of `row_bytes` bytes, a pitch apart.
struct Copy {
  char* to;
  std::size_t to_pitch;
  const char* from;
  std::size_t from_pitch;
  std::size_t row_bytes;
  std::size_t rows;
};

bool fits_kind(cudaMemcpyKind kind, bool from_device, bool to_device) {
  switch (kind) {
    case cudaMemcpyHostToHost: return !from_device && !to_device;
    case cudaMemcpyHostToDevice: return !from_device && to_device;
    case cudaMemcpyDeviceToHost: return from_device && !to_device;
    case cudaMemcpyDeviceToDevice: return from_device && to_device;
    default: return true;
  }
}

void run_copy(const Copy& copy, bool from_device, bool to_device) {
  for (std::size_t row = 0; row < copy.rows; ++row) {
    const char* const from = copy.from + row * copy.from_pitch;
    char* const to = copy.to + row * copy.to_pitch;
    if (from_device) require_region(from, copy.row_bytes, Use::read, "copy");
    if (to_device) require_region(to, copy.row_bytes, Use::write, "copy");
    std::memmove(to, from, copy.row_bytes);
    if (to_device) mark_initialised(to, copy.row_bytes);
  }
}

void count_bytes(const Copy& copy, bool from_device, bool to_device) {
  CallCounts& counts = runtime().counts;
  const std::uint64_t bytes = copy.rows * copy.row_bytes;
  if (to_device && !from_device)
    (is_pinned_memory(copy.from) ? counts.pinned_to_device : counts.pageable_to_device) += bytes;
  if (from_device && !to_device)
    (is_pinned_memory(copy.to) ? counts.device_to_pinned : counts.device_to_pageable) += bytes;
}

cudaError_t wait_for(Queue& queue) {
  const cudaError_t status = run_queue(queue);
  count_synchronisation(queue.device);
  return status;
}

// When a copy to the device reads pageable memory. The CUDA documentation promises for asynchronous copies
// only that they read it before later work of the stream is done.
enum class Reads : std::uint8_t { in_the_call, when_it_runs };

std::vector<char> read_rows(const Copy& copy) {
  std::vector<char> read(copy.rows * copy.row_bytes);
  for (std::size_t row = 0; row < copy.rows; ++row)
    std::memcpy(read.data() + row * copy.row_bytes, copy.from + row * copy.from_pitch, copy.row_bytes);
  return read;
}

// msync() fails with ENOMEM if a page is not mapped.
bool is_mapped(const char* begin, std::size_t bytes) {
  constexpr std::uintptr_t page = 4096;
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
  return msync(reinterpret_cast<void*>(first), end - first, MS_ASYNC) == 0;
}

// The source must be what it was when the copy was queued.
void require_unchanged(const Copy& copy, const std::vector<char>& before) {
  const std::size_t bytes = (copy.rows - 1) * copy.from_pitch + copy.row_bytes;
  if (is_mapped(copy.from, bytes) && read_rows(copy) == before) return;
  throw Failure(
      cudaErrorIllegalAddress,
      fmt::format("the pageable source of a copy of {} bytes was changed or freed before the copy ran",
                  before.size()));
}

// The destination in pageable memory is complete when the call returns.
cudaError_t queue_copy(Copy copy, cudaMemcpyKind kind, Queue& queue, Reads reads) {
  if (copy.rows == 0 || copy.row_bytes == 0) return cudaSuccess;
  if (std::max(copy.to_pitch, copy.from_pitch) > max_pitch && copy.rows > 1)
    return cudaErrorInvalidPitchValue;
  if (copy.row_bytes > copy.to_pitch || copy.row_bytes > copy.from_pitch) return cudaErrorInvalidPitchValue;
  const bool from_device = is_device_memory(copy.from);
  const bool to_device = is_device_memory(copy.to);
  if (!fits_kind(kind, from_device, to_device)) return cudaErrorInvalidMemcpyDirection;
  count_bytes(copy, from_device, to_device);
  std::shared_ptr<const std::vector<char>> staged;
  const bool is_late = to_device && reads == Reads::when_it_runs && options().late_copies;
  if (!from_device && !is_pinned_memory(copy.from)) {
    staged = std::make_shared<const std::vector<char>>(read_rows(copy));
    if (!is_late) {
      copy.from = staged->data();
      copy.from_pitch = copy.row_bytes;
    }
  }
  push(queue, {.work = [=] {
         if (staged && is_late) require_unchanged(copy, *staged);
         run_copy(copy, from_device, to_device);
       }});
  return to_device || is_pinned_memory(copy.to) ? cudaSuccess : wait_for(queue);
}

cudaError_t queue_fill(char* to, int value, std::size_t bytes, Queue& queue) {
  if (bytes == 0) return cudaSuccess;
  if (!is_device_memory(to)) return cudaErrorInvalidValue;
  push(queue, {.work = [=] {
         require_region(to, bytes, Use::write, "fill");
         std::memset(to, value, bytes);
         mark_initialised(to, bytes);
       }});
  return cudaSuccess;
}

Copy plain_copy(void* to, const void* from, std::size_t bytes) {
  return {static_cast<char*>(to), bytes, static_cast<const char*>(from), bytes, bytes, 1};
}

}  // namespace
}  // namespace cuda_emulation

using namespace cuda_emulation;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemcpyAsync")) return finish(status);
  return finish(queue_copy(plain_copy(to, from, bytes), kind, *queue_of(stream), Reads::when_it_runs));
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemcpy")) return finish(status);
  Queue& queue = *queue_of(nullptr);
  if (const cudaError_t status = queue_copy(plain_copy(to, from, bytes), kind, queue, Reads::in_the_call))
    return finish(status);
  // From pageable memory the call may return once the source has been read, before the device has the data:
  // non-blocking streams must synchronise with it.
  const bool may_return = is_device_memory(to) && !is_device_memory(from) && !is_pinned_memory(from);
  // To pageable memory queue_copy() has waited.
  const bool has_waited = !is_device_memory(to) && !is_pinned_memory(to);
  return finish(may_return || has_waited ? cudaSuccess : wait_for(queue));
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t row_bytes, std::size_t rows, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemcpy2DAsync")) return finish(status);
  return finish(queue_copy(
      {static_cast<char*>(to), to_pitch, static_cast<const char*>(from), from_pitch, row_bytes, rows}, kind,
      *queue_of(stream), Reads::when_it_runs));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemcpyPeerAsync")) return finish(status);
  return finish(queue_copy(plain_copy(to, from, bytes), cudaMemcpyDeviceToDevice, *queue_of(stream),
                           Reads::in_the_call));
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemsetAsync")) return finish(status);
  return finish(queue_fill(static_cast<char*>(to), value, bytes, *queue_of(stream)));
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

}  // extern "C"
