// The k best values of every row or part of a row by WarpSelect, one warp each.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/cuda/device/selection_task.h"

namespace nearwise::gpu {

// For k <= Capacity, one of tuning::select_capacities.
template <Ties ties, int Capacity>
void launch_select_rows(cudaStream_t stream, const SelectionTask& task);

}  // namespace nearwise::gpu
