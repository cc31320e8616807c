#include "backend/cuda/device/staging.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

// Buffers not in use. Never freed at exit: the driver may already be gone.
struct IdleBuffers {
  std::mutex mutex;
  std::vector<std::byte*> buffers;
};

IdleBuffers& idle_buffers() {
  static auto* const idle = new IdleBuffers;
  return *idle;
}

std::byte* acquire_buffer(const CudaStream& stream, const char* operation) {
  {
    IdleBuffers& idle = idle_buffers();
    const std::lock_guard lock(idle.mutex);
    if (!idle.buffers.empty()) {
      std::byte* const buffer = idle.buffers.back();
      idle.buffers.pop_back();
      return buffer;
    }
  }
  const DeviceScope scope(stream.ordinal());
  void* buffer = nullptr;
  check(cudaMallocHost(&buffer, 2 * tuning::staging_piece_bytes), operation);
  return static_cast<std::byte*>(buffer);
}

void release_buffer(std::byte* buffer) {
  IdleBuffers& idle = idle_buffers();
  const std::lock_guard lock(idle.mutex);
  idle.buffers.push_back(buffer);
}

}  // namespace

Event::Event(const CudaStream& stream) {
  const DeviceScope scope(stream.ordinal());
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event");
}

Staging::Staging(const CudaStream& stream, const char* operation)
    : stream_(stream),
      operation_(operation),
      copied_{Event(stream), Event(stream)},
      buffer_(acquire_buffer(stream, operation)) {}

Staging::~Staging() {
  stream_.settle();
  release_buffer(buffer_);
}

void Staging::send(const RowsView& rows, std::byte* out) {
  const DeviceScope scope(stream_.ordinal());
  const std::size_t half = sent_ % 2;
  if (sent_ >= 2) check(cudaEventSynchronize(copied_[half].handle()), operation_);
  ++sent_;
  std::byte* const memory = buffer_ + half * tuning::staging_piece_bytes;
  const std::size_t row_bytes = rows.dim() * element_size(rows.type());
  constexpr std::size_t task_bytes = 1 << 18;
  const std::size_t task_rows = std::max<std::size_t>(1, task_bytes / row_bytes);
  stream_.context.threads->for_each(divide_up(rows.rows(), task_rows), [&](std::size_t task) {
    const std::size_t end = std::min(rows.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row)
      std::memcpy(memory + row * row_bytes, rows.row(row), row_bytes);
  });
  check(cudaMemcpyAsync(out, memory, rows.rows() * row_bytes, cudaMemcpyHostToDevice, stream_.handle()),
        operation_);
  check(cudaEventRecord(copied_[half].handle(), stream_.handle()), operation_);
}

void release_staging_buffers() {
  IdleBuffers& idle = idle_buffers();
  const std::lock_guard lock(idle.mutex);
  for (std::byte* const buffer : idle.buffers) ignore(cudaFreeHost(buffer));
  idle.buffers.clear();
}

}  // namespace nearwise::gpu
