#include "backend/cuda/device/stream_set.h"

#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "backend/cuda/device/blas.h"
#include "backend/cuda/device/device_scope.h"

namespace nearwise::gpu {
namespace {

// Never destroyed: at exit the driver may already be gone, and destroying a cuBLAS handle then crashes.
struct IdleSets {
  std::mutex mutex;
  std::map<int, std::vector<std::unique_ptr<StreamSet>>> of_device;
};

IdleSets& idle_sets() {
  static auto* const idle = new IdleSets;
  return *idle;
}

// Deletes a set whose place in the pool cannot be allocated.
struct ReturnSet {
  void operator()(StreamSet* set) const noexcept {
    std::unique_ptr<StreamSet> owned(set);
    IdleSets& idle = idle_sets();
    const std::lock_guard lock(idle.mutex);
    try {
      idle.of_device[owned->ordinal()].push_back(std::move(owned));
    } catch (const std::bad_alloc&) {
      owned.reset();
    }
  }
};

std::unique_ptr<StreamSet> take_idle_set(int ordinal) {
  IdleSets& idle = idle_sets();
  const std::lock_guard lock(idle.mutex);
  auto& sets = idle.of_device[ordinal];
  if (sets.empty()) return nullptr;
  std::unique_ptr<StreamSet> set = std::move(sets.back());
  sets.pop_back();
  return set;
}

}  // namespace

StreamHandle::StreamHandle(int device) : ordinal(device), pool(memory_pool(device)) {
  const DeviceScope scope(ordinal);
  // Does not synchronise with the legacy default stream, which belongs to the application.
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "opening a stream");
}

StreamSet::~StreamSet() {
  if (blas_ != nullptr) destroy_blas(ordinal_, blas_);
}

const std::shared_ptr<const StreamHandle>& StreamSet::stream(std::size_t number) {
  if (!streams_[number]) streams_[number] = std::make_shared<const StreamHandle>(ordinal_);
  return streams_[number];
}

PinnedMemory& StreamSet::pinned(std::size_t number, const char* operation) {
  if (!pinned_[number]) pinned_[number] = std::make_unique<PinnedMemory>(ordinal_, operation);
  return *pinned_[number];
}

cublasHandle_t StreamSet::blas() {
  if (blas_ == nullptr) blas_ = create_blas(ordinal_);
  return blas_;
}

std::shared_ptr<StreamSet> acquire_streams(int ordinal) {
  std::unique_ptr<StreamSet> set = take_idle_set(ordinal);
  if (!set) set = std::make_unique<StreamSet>(ordinal);
  return {set.release(), ReturnSet()};
}

void release_idle_streams() {
  IdleSets& idle = idle_sets();
  const std::lock_guard lock(idle.mutex);
  idle.of_device.clear();
}

}  // namespace nearwise::gpu
