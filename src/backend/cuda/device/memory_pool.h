// The memory pool of a device: one per device and process, so that memory freed by one call serves the next.
#pragma once

#include <cuda_runtime_api.h>

namespace nearwise::gpu {

// Made at the first use, kept to the end of the process. Thread-safe. Our own, not the device's default pool: that one
// belongs to the application, and to other libraries in the process.
cudaMemPool_t memory_pool(int ordinal);

}  // namespace nearwise::gpu
