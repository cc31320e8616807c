// Converts rows of any element type to f32, exactly.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "nearwise/types.h"

namespace nearwise::gpu {

// rows [count, dim], contiguous, to out [count, dim]; both on the device.
void launch_widen_rows(cudaStream_t stream, ElementType type, const std::byte* rows, std::size_t count,
                       std::size_t dim, float* out);

// The kernel of f32 rows: for questions about the code that the driver has loaded.
const void* widen_rows_kernel();

}  // namespace nearwise::gpu
