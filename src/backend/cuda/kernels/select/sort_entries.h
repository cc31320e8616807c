// Sorts the entries (image and position) of the k best of every row or part of a row and writes them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/device/selection_task.h"

namespace nearwise::gpu {

// Sorts runs of tuning::sorted_run entries in place.
void launch_sort_runs(cudaStream_t stream, Ties ties, const SelectionTask& task, std::int64_t* entries);

// Merges pairs of sorted runs of `run` entries.
void launch_merge_runs(cudaStream_t stream, Ties ties, const SelectionTask& task, std::uint32_t run,
                       const std::int64_t* entries, std::int64_t* merged);

// Writes values and ids of sorted entries to the task's output.
void launch_write_entries(cudaStream_t stream, const SelectionTask& task, const std::int64_t* entries);

}  // namespace nearwise::gpu
