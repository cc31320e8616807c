// Entries (image and position) of the k best of every row, or part of a row, put in order and written out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/device/selection_task.h"

namespace nearwise::gpu {

// Sorts runs of tuning::sorted_run entries in place.
void launch_sort_runs(cudaStream_t stream, Ties ties, const SelectionTask& task, std::int64_t* entries);

// Merges sorted runs of `run` entries two by two.
void launch_merge_runs(cudaStream_t stream, Ties ties, const SelectionTask& task, std::uint32_t run,
                       const std::int64_t* entries, std::int64_t* merged);

// Values and ids of sorted entries, to where the task wants them.
void launch_write_entries(cudaStream_t stream, const SelectionTask& task, const std::int64_t* entries);

}  // namespace nearwise::gpu
