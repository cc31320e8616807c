// Memory pool of a device, one per device and process, so that calls reuse freed memory.
#pragma once

#include <cuda_runtime_api.h>

namespace nearwise::gpu {

// Created on first use, lives until the process ends. Thread-safe. Separate from the device's default pool,
// which belongs to the application and other libraries.
cudaMemPool_t memory_pool(int ordinal);

}  // namespace nearwise::gpu
