// The k best of every row, or part of a row, for any k and in any order: radix selection, one block each.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/device/selection_task.h"

namespace nearwise::gpu {

// The entries (image and position) of the k best, in any order: entries[rows, parts, k].
void launch_radix_select(cudaStream_t stream, Ties ties, const SelectionTask& task, std::int64_t* entries);

}  // namespace nearwise::gpu
