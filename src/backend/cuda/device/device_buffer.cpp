#include "backend/cuda/device/device_buffer.h"

#include "backend/cuda/device/device_scope.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t granule_bytes = 256;  // alignment of CUDA allocations

}  // namespace

std::size_t device_bytes(std::size_t size, std::size_t element_bytes) {
  const std::size_t bytes = checked_multiply(size, element_bytes, "device memory", ErrorCode::out_of_memory);
  return checked_add(bytes, granule_bytes - 1, "device memory", ErrorCode::out_of_memory) / granule_bytes *
         granule_bytes;
}

void* allocate_on_stream(const StreamHandle& stream, std::size_t bytes, const char* operation) {
  const DeviceScope scope(stream.ordinal);
  return stream.pool.allocate(bytes, stream.stream, operation);
}

}  // namespace nearwise::gpu
