// The best or the two best values of every row or part of a row, by a reduction in one warp.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/cuda/device/selection_task.h"

namespace nearwise::gpu {

// For k <= tuning::max_reduced_k.
void launch_reduce_rows(cudaStream_t stream, Ties ties, const SelectionTask& task);

}  // namespace nearwise::gpu
