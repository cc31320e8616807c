#include "backend/cuda/device/memory_pool.h"

#include <cstdint>
#include <map>
#include <mutex>

#include "backend/cuda/device/error.h"

namespace nearwise::gpu {
namespace {

// Unused memory a pool retains: enough for the workspaces of repeated small calls. More returns to the device
// for other libraries in the process.
constexpr std::uint64_t retained_bytes = std::uint64_t{256} << 20;

cudaMemPool_t make_pool(int ordinal) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = ordinal;
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &properties), "memory pool", ordinal);
  std::uint64_t threshold = retained_bytes;
  const cudaError_t status = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  if (status != cudaSuccess) ignore(cudaMemPoolDestroy(pool));
  check(status, "memory pool", ordinal);
  return pool;
}

}  // namespace

cudaMemPool_t memory_pool(int ordinal) {
  // Never destroyed: at exit the driver may already be gone, and it frees the pools.
  static auto* const mutex = new std::mutex;
  static auto* const pools = new std::map<int, cudaMemPool_t>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto known = pools->find(ordinal);
  if (known != pools->end()) return known->second;
  return pools->emplace(ordinal, make_pool(ordinal)).first->second;
}

}  // namespace nearwise::gpu
