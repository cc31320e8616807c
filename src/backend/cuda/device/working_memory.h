// Chooses the size of working memory within the memory budget and the device's free memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cuda/device/stream.h"
#include "nearwise/error.h"

namespace nearwise::gpu {

// Calls make(bytes), which may allocate up to `bytes`, and leaves `reserved_bytes` of the budget free. Tries
// `target_bytes` first and halves them, down to `min_bytes`, while the device is out of memory.
template <typename Make>
auto with_working_memory(const CudaStream& stream, std::uint64_t min_bytes, std::uint64_t target_bytes,
                         std::uint64_t reserved_bytes, const Make& make) {
  const std::uint64_t available = stream.budget().available();
  for (std::uint64_t bytes =
           std::max(min_bytes, std::min(target_bytes, available - std::min(available, reserved_bytes)));
       ;) {
    try {
      return make(bytes);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory || bytes <= min_bytes) throw;
      bytes = std::max(min_bytes, bytes / 2);
    }
  }
}

}  // namespace nearwise::gpu
