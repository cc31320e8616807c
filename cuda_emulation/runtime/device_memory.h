// Device memory: addresses that the host cannot read, a limit per device, zones that show a write past the end.
#pragma once

#include <cstddef>

namespace cuda_emulation {

// Device memory can be read and written only while one of these lives: while queued work runs.
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
