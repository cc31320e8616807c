// The best or the two best of every row, or of every part of a row: a reduction, one warp each.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/cuda/device/selection_task.h"

namespace nearwise::gpu {

// For k <= tuning::most_reduced.
void launch_reduce_rows(cudaStream_t stream, Ties ties, const SelectionTask& task);

}  // namespace nearwise::gpu
