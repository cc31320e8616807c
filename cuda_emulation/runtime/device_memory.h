// Device memory: unreadable by the host, limited per device, with guard zones that detect writes past the
// end.
#pragma once

#include <cstddef>

namespace cuda_emulation {

// Device memory is accessible only while one of these exists, that is while queued work runs.
class MemoryAccess {
 public:
  MemoryAccess();
  ~MemoryAccess();
  MemoryAccess(const MemoryAccess&) = delete;
  MemoryAccess& operator=(const MemoryAccess&) = delete;
};

bool is_device_memory(const void* address);
bool is_pinned_memory(const void* address);

}  // namespace cuda_emulation
