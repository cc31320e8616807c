#include "cuda_emulation/runtime/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cuda_emulation/engine/failure.h"
#include "cuda_emulation/engine/memory.h"
#include "cuda_emulation/engine/threads.h"
#include "cuda_emulation/runtime/state.h"

namespace cuda_emulation {
namespace {

// Addresses are never reused: a pointer to freed memory stays invalid.
constexpr std::size_t address_space_bytes = std::size_t{1} << 40;
constexpr std::size_t granule_bytes = 256;  // CUDA's allocation alignment
constexpr std::size_t guard_bytes = 256;    // guard zone after every allocation
constexpr char guard_byte = '\xa5';

struct AddressSpace {
  AddressSpace()
      : begin(static_cast<char*>(mmap(nullptr, address_space_bytes, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        end(begin) {}

  void protect(int protection) const {
    if (end > begin) mprotect(begin, static_cast<std::size_t>(end - begin), protection);
  }

  char* begin;
  char* end;  // end of the used addresses
  int openings = 0;
};

AddressSpace& address_space() {
  static AddressSpace space;
  return space;
}

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::size_t whole_bytes(std::size_t bytes) { return round_up(bytes, granule_bytes) + guard_bytes; }

// New addresses or nullptr. Rounded to whole pages, so that they can be returned to the system.
char* reserve_addresses(std::size_t bytes) {
  AddressSpace& space = address_space();
  const std::size_t pages = round_up(whole_bytes(bytes), 4096);
  if (space.begin == MAP_FAILED ||
      pages > address_space_bytes - static_cast<std::size_t>(space.end - space.begin))
    return nullptr;
  char* const address = space.end;
  space.end += pages;
  if (space.openings > 0) mprotect(address, pages, PROT_READ | PROT_WRITE);
  return address;
}

void activate(char* address, const Allocation& allocation) {
  std::memset(address, poison, allocation.bytes);
  std::memset(address + allocation.bytes, guard_byte, whole_bytes(allocation.bytes) - allocation.bytes);
  add_region(address, allocation.bytes, allocation.device);
}

void release(char* address) {
  Runtime& state = runtime();
  const auto found = state.allocations.find(address);
  const Allocation allocation = found->second;
  const std::string_view zone(address + allocation.bytes, whole_bytes(allocation.bytes) - allocation.bytes);
  const bool intact = zone.find_first_not_of(guard_byte) == std::string_view::npos;
  remove_region(address);
  madvise(address, round_up(whole_bytes(allocation.bytes), 4096), MADV_DONTNEED);
  state.devices[static_cast<std::size_t>(allocation.device)].used -= allocation.bytes;
  if (allocation.pool != nullptr) allocation.pool->used_bytes -= allocation.bytes;
  state.allocations.erase(found);
  if (!intact)
    throw Failure(cudaErrorIllegalAddress,
                  fmt::format("write past the end of an allocation of {} bytes", allocation.bytes));
}

void take_from_pool(Pool& pool, std::size_t bytes) {
  pool.used_bytes += bytes;
  pool.live_bytes += bytes;
  if (pool.live_bytes <= pool.held_bytes) return;
  CallCounts& counts = runtime().counts;
  ++counts.pool_growths;
  counts.pool_growth_bytes += pool.live_bytes - pool.held_bytes;
  pool.held_bytes = pool.live_bytes;
}

// Reserves device memory at the call; the allocation becomes live in stream order.
cudaError_t allocate(void** pointer, std::size_t bytes, int ordinal, Pool* pool) {
  Runtime& state = runtime();
  *pointer = nullptr;
  if (!may_allocate()) return cudaErrorMemoryAllocation;
  Device& device = state.devices[static_cast<std::size_t>(ordinal)];
  if (bytes > device.capacity - device.used) {
    // The driver also waits for memory that was freed in stream order.
    if (const cudaError_t status = run_device(ordinal)) return status;
    if (bytes > device.capacity - device.used) return cudaErrorMemoryAllocation;
  }
  char* const address = reserve_addresses(bytes);
  if (address == nullptr) return cudaErrorMemoryAllocation;
  device.used += bytes;
  if (pool != nullptr) take_from_pool(*pool, bytes);
  state.allocations[address] = {bytes, ordinal, pool, false};
  *pointer = address;
  return cudaSuccess;
}

// The allocation at this address, unless already freed.
Allocation* find_allocation(void* pointer) {
  const auto found = runtime().allocations.find(static_cast<char*>(pointer));
  return found == runtime().allocations.end() || found->second.freed ? nullptr : &found->second;
}

void mark_freed(Allocation& allocation) {
  allocation.freed = true;
  if (allocation.pool != nullptr) allocation.pool->live_bytes -= allocation.bytes;
}

Pool* pool_of(cudaMemPool_t handle) { return reinterpret_cast<Pool*>(handle); }

cudaError_t allocate_in_stream(void** pointer, std::size_t bytes, Pool& pool, cudaStream_t stream) {
  *pointer = nullptr;
  if (bytes == 0) return cudaErrorInvalidValue;
  if (const cudaError_t status = allocate(pointer, bytes, pool.device, &pool)) return status;
  auto* const address = static_cast<char*>(*pointer);
  push(*queue_of(stream),
       {.bookkeeping = [address] { activate(address, runtime().allocations.at(address)); }});
  return cudaSuccess;
}

}  // namespace

MemoryAccess::MemoryAccess() {
  if (address_space().openings++ == 0) address_space().protect(PROT_READ | PROT_WRITE);
}
MemoryAccess::~MemoryAccess() {
  if (--address_space().openings == 0) address_space().protect(PROT_NONE);
}

bool is_device_memory(const void* address) {
  const AddressSpace& space = address_space();
  return address >= space.begin && address < space.end;
}

}  // namespace cuda_emulation

using namespace cuda_emulation;

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const RuntimeLock lock;
  *pointer = nullptr;
  if (const cudaError_t status = device_call_error("cudaMalloc")) return finish(status);
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t status = allocate(pointer, bytes, current_device(), nullptr)) return finish(status);
  const MemoryAccess open;
  auto* const address = static_cast<char*>(*pointer);
  activate(address, runtime().allocations.at(address));
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  const RuntimeLock lock;
  count_call("cudaFree");
  if (pointer == nullptr) return finish(runtime().failure);
  Allocation* const allocation = find_allocation(pointer);
  if (allocation == nullptr) return finish(cudaErrorInvalidValue);
  static_cast<void>(run_everything());  // cudaFree synchronises the device first
  count_synchronisation(allocation->device);
  mark_freed(*allocation);
  push(*queue_of(nullptr), {.bookkeeping = [address = static_cast<char*>(pointer)] { release(address); }});
  return finish(run_everything());
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  const RuntimeLock lock;
  *pointer = nullptr;
  if (const cudaError_t status = device_call_error("cudaMallocFromPoolAsync")) return finish(status);
  return finish(allocate_in_stream(pointer, bytes, *pool_of(pool), stream));
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  const RuntimeLock lock;
  *pointer = nullptr;
  if (const cudaError_t status = device_call_error("cudaMallocAsync")) return finish(status);
  Pool& pool = runtime().devices[static_cast<std::size_t>(queue_of(stream)->device)].default_pool;
  return finish(allocate_in_stream(pointer, bytes, pool, stream));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const RuntimeLock lock;
  count_call("cudaFreeAsync");
  if (pointer == nullptr) return finish(runtime().failure);
  Allocation* const allocation = find_allocation(pointer);
  if (allocation == nullptr) return finish(cudaErrorInvalidValue);
  mark_freed(*allocation);
  push(*queue_of(stream), {.bookkeeping = [address = static_cast<char*>(pointer)] { release(address); }});
  return finish(runtime().failure);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* handle, const cudaMemPoolProps* properties) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemPoolCreate")) return finish(status);
  const int device = properties->location.id;
  if (properties->allocType != cudaMemAllocationTypePinned ||
      properties->location.type != cudaMemLocationTypeDevice || device < 0 ||
      device >= static_cast<int>(runtime().devices.size()))
    return finish(cudaErrorInvalidValue);
  auto pool = std::make_unique<Pool>();
  pool->device = device;
  *handle = reinterpret_cast<cudaMemPool_t>(pool.get());
  runtime().pools.emplace(pool.get(), std::move(pool));
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  const RuntimeLock lock;
  count_call("cudaMemPoolDestroy");
  static_cast<void>(run_everything());  // includes frees that are still queued
  const auto found = runtime().pools.find(pool_of(handle));
  if (found == runtime().pools.end() || found->second->used_bytes != 0) return finish(cudaErrorInvalidValue);
  runtime().pools.erase(found);
  return finish(runtime().failure);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemPoolSetAttribute")) return finish(status);
  if (attribute != cudaMemPoolAttrReleaseThreshold) return finish(cudaErrorInvalidValue);
  pool_of(handle)->release_threshold = *static_cast<const std::uint64_t*>(value);
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaMemPoolGetAttribute")) return finish(status);
  const Pool& pool = *pool_of(handle);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold: *static_cast<std::uint64_t*>(value) = pool.release_threshold; break;
    case cudaMemPoolAttrReservedMemCurrent: *static_cast<std::uint64_t*>(value) = pool.held_bytes; break;
    case cudaMemPoolAttrUsedMemCurrent: *static_cast<std::uint64_t*>(value) = pool.used_bytes; break;
    default: return finish(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, std::size_t bytes) {
  const RuntimeLock lock;
  count_call("cudaMemPoolTrimTo");
  Pool& pool = *pool_of(handle);
  pool.held_bytes = std::min(pool.held_bytes, std::max(pool.live_bytes, bytes));
  return finish(runtime().failure);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* handle, int device) {
  const RuntimeLock lock;
  if (const cudaError_t status = device_call_error("cudaDeviceGetDefaultMemPool")) return finish(status);
  if (device < 0 || device >= static_cast<int>(runtime().devices.size()))
    return finish(cudaErrorInvalidDevice);
  *handle =
      reinterpret_cast<cudaMemPool_t>(&runtime().devices[static_cast<std::size_t>(device)].default_pool);
  return cudaSuccess;
}

}  // extern "C"
