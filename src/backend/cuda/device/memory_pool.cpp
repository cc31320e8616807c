#include "backend/cuda/device/memory_pool.h"

#include <map>
#include <memory>

#include "backend/cuda/device/error.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

// Freed memory that a pool retains: enough for the working memory of repeated calls. More returns to the
// device for other libraries in the process.
constexpr std::uint64_t retained_bytes = std::uint64_t{256} << 20;
// Steps of the threshold: small allocations do not change it.
constexpr std::uint64_t step_bytes = std::uint64_t{64} << 20;

}  // namespace

MemoryPool::MemoryPool(int ordinal) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = ordinal;
  check(cudaMemPoolCreate(&pool_, &properties), "memory pool", ordinal);
  const cudaError_t status = follow_live_bytes();
  if (status != cudaSuccess) ignore(cudaMemPoolDestroy(pool_));
  check(status, "memory pool", ordinal);
}

void* MemoryPool::allocate(std::size_t bytes, cudaStream_t stream, const char* operation) {
  void* memory = nullptr;
  check(cudaMallocFromPoolAsync(&memory, bytes, pool_, stream), operation);
  const std::lock_guard lock(mutex_);
  live_bytes_ += bytes;
  // A threshold that stays too low costs time only.
  ignore(follow_live_bytes());
  return memory;
}

void MemoryPool::free(void* memory, std::size_t bytes, cudaStream_t stream) noexcept {
  ignore(cudaFreeAsync(memory, stream));
  const std::lock_guard lock(mutex_);
  live_bytes_ -= bytes;
  ignore(follow_live_bytes());
}

cudaError_t MemoryPool::follow_live_bytes() {
  std::uint64_t threshold = round_up(live_bytes_, step_bytes) + retained_bytes;
  if (threshold == threshold_) return cudaSuccess;
  const cudaError_t status = cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold);
  if (status == cudaSuccess) threshold_ = threshold;
  return status;
}

MemoryPool& memory_pool(int ordinal) {
  // Never destroyed: at exit the driver may already be gone, and it frees the pools.
  static auto* const mutex = new std::mutex;
  static auto* const pools = new std::map<int, std::unique_ptr<MemoryPool>>;
  const std::lock_guard lock(*mutex);
  std::unique_ptr<MemoryPool>& pool = (*pools)[ordinal];
  if (!pool) pool = std::make_unique<MemoryPool>(ordinal);
  return *pool;
}

}  // namespace nearwise::gpu
