#include "backend/cuda/device/memory_pool.h"

#include <cstdint>
#include <map>
#include <mutex>

#include "backend/cuda/device/error.h"

namespace nearwise::gpu {
namespace {

// What a pool keeps when nothing of it is in use. Enough for the workspaces of small calls made again and again; more
// goes back to the device, where other libraries of the process need it.
constexpr std::uint64_t kept_bytes = std::uint64_t{256} << 20;

cudaMemPool_t make_pool(int ordinal) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = ordinal;
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &properties), "memory pool", ordinal);
  std::uint64_t threshold = kept_bytes;
  const cudaError_t status = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  if (status != cudaSuccess) ignore(cudaMemPoolDestroy(pool));
  check(status, "memory pool", ordinal);
  return pool;
}

}  // namespace

cudaMemPool_t memory_pool(int ordinal) {
  // Not destroyed at exit: by then the driver may be gone, and it takes the pools with it.
  static auto* const mutex = new std::mutex;
  static auto* const pools = new std::map<int, cudaMemPool_t>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto known = pools->find(ordinal);
  if (known != pools->end()) return known->second;
  return pools->emplace(ordinal, make_pool(ordinal)).first->second;
}

}  // namespace nearwise::gpu
