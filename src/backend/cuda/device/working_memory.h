// Working memory that is as large as is good, or as the limit or the device allow.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cuda/device/stream.h"
#include "nearwise/error.h"

namespace nearwise::gpu {

// make(bytes), which allocates at most that, and leaves `kept` of the budget to others. Where the device has less, half
// of it, down to `least`.
template <typename Make>
auto with_working_memory(const CudaStream& stream, std::uint64_t least, std::uint64_t good,
                         std::uint64_t kept, const Make& make) {
  const std::uint64_t available = stream.budget().available();
  for (std::uint64_t bytes = std::max(least, std::min(good, available - std::min(available, kept)));;) {
    try {
      return make(bytes);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory || bytes <= least) throw;
      bytes = std::max(least, bytes / 2);
    }
  }
}

}  // namespace nearwise::gpu
