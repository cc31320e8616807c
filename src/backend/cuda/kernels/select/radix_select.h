// The k best values of every row or part of a row, unordered, for any k: radix selection by one block each.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/device/selection_task.h"

namespace nearwise::gpu {

// Writes the entries (image and position) of the k best, unordered: entries[rows, parts, k].
void launch_radix_select(cudaStream_t stream, Ties ties, const SelectionTask& task, std::int64_t* entries);

}  // namespace nearwise::gpu
