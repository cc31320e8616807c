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

// Areas that nobody uses at the moment. Not freed at exit: by then the driver may be gone.
struct IdleAreas {
  std::mutex mutex;
  std::vector<std::byte*> areas;
};

IdleAreas& idle_areas() {
  static auto* const idle = new IdleAreas;
  return *idle;
}

std::byte* take_area(const CudaStream& stream, const char* operation) {
  {
    IdleAreas& idle = idle_areas();
    const std::lock_guard lock(idle.mutex);
    if (!idle.areas.empty()) {
      std::byte* const area = idle.areas.back();
      idle.areas.pop_back();
      return area;
    }
  }
  const DeviceScope scope(stream.ordinal());
  void* area = nullptr;
  check(cudaMallocHost(&area, 2 * tuning::staging_piece_bytes), operation);
  return static_cast<std::byte*>(area);
}

void give_back(std::byte* area) {
  IdleAreas& idle = idle_areas();
  const std::lock_guard lock(idle.mutex);
  idle.areas.push_back(area);
}

}  // namespace

Event::Event(const CudaStream& stream) {
  const DeviceScope scope(stream.ordinal());
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
}

Staging::Staging(const CudaStream& stream, const char* operation)
    : stream_(stream),
      operation_(operation),
      copied_{Event(stream), Event(stream)},
      area_(take_area(stream, operation)) {}

Staging::~Staging() {
  ignore(cudaStreamSynchronize(stream_.handle()));
  give_back(area_);
}

void Staging::send(const RowsView& rows, std::byte* out) {
  const DeviceScope scope(stream_.ordinal());
  const std::size_t half = sent_ % 2;
  if (sent_ >= 2) check(cudaEventSynchronize(copied_[half].handle()), operation_);
  ++sent_;
  std::byte* const memory = area_ + half * tuning::staging_piece_bytes;
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

void release_staging_areas() {
  IdleAreas& idle = idle_areas();
  const std::lock_guard lock(idle.mutex);
  for (std::byte* const area : idle.areas) ignore(cudaFreeHost(area));
  idle.areas.clear();
}

}  // namespace nearwise::gpu
