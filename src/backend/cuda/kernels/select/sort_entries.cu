// Sorts selected entries [rows, parts, k]: runs in shared memory, then pairwise merges of runs.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/block/selection_entry.cuh"
#include "backend/cuda/device/gpu.h"
#include "backend/cuda/kernels/select/sort_entries.h"
#include "backend/cuda/tuning/selection.h"

namespace nearwise::gpu {
namespace {

// A block sorts one run: blockIdx.x is the run of a part, blockIdx.y the part. Bitonic sort with the first
// stage of each merge reversed, so that the lower index always keeps the smaller entry and no padding is
// needed.
template <Ties ties>
__global__ void __launch_bounds__(tuning::sort_threads)
    sort_runs(SelectionTask task, std::int64_t* entries, std::uint32_t first_part) {
  __shared__ SelectionEntry run[tuning::sorted_run];
  const std::uint32_t number = first_part + blockIdx.y;
  const DeviceRowIds ids = RowPart(task, number).ids;
  const std::uint32_t begin = blockIdx.x * tuning::sorted_run;
  const std::uint32_t count = min(task.k - begin, std::uint32_t{tuning::sorted_run});
  SelectionEntry* const source = entries + std::size_t{number} * task.k + begin;
  for (std::uint32_t i = threadIdx.x; i < count; i += tuning::sort_threads) run[i] = source[i];
  __syncthreads();
  for (std::uint32_t size = 2; size < 2 * count; size *= 2)
    for (std::uint32_t distance = size / 2; distance > 0; distance /= 2) {
      for (std::uint32_t pair = threadIdx.x; pair < count; pair += tuning::sort_threads) {
        const std::uint32_t lower = pair / distance * 2 * distance + pair % distance;
        const std::uint32_t upper = distance == size / 2 ? lower ^ (size - 1) : lower + distance;
        if (upper >= count) continue;
        const SelectionEntry left = run[lower];
        const SelectionEntry right = run[upper];
        if (entry_before<ties>(right, left, ids)) {
          run[lower] = right;
          run[upper] = left;
        }
      }
      __syncthreads();
    }
  for (std::uint32_t i = threadIdx.x; i < count; i += tuning::sort_threads) source[i] = run[i];
}

// One thread per entry: its position is its own index plus the number of smaller entries in the neighbouring
// run.
template <Ties ties>
__global__ void __launch_bounds__(tuning::sort_threads)
    merge_runs(SelectionTask task, std::uint32_t run, const std::int64_t* entries, std::int64_t* merged,
               std::uint32_t first_part) {
  const std::uint32_t index = blockIdx.x * tuning::sort_threads + threadIdx.x;
  if (index >= task.k) return;
  const std::uint32_t number = first_part + blockIdx.y;
  const DeviceRowIds ids = RowPart(task, number).ids;
  const SelectionEntry* const source = entries + std::size_t{number} * task.k;
  const SelectionEntry entry = source[index];
  const std::uint32_t own_run = index / run;
  const std::uint32_t begin = min((own_run ^ 1) * run, task.k);
  const std::uint32_t end = min(begin + run, task.k);
  std::uint32_t low = begin;
  for (std::uint32_t high = end; low < high;) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (entry_before<ties>(source[middle], entry, ids))
      low = middle + 1;
    else
      high = middle;
  }
  const std::uint32_t position = own_run / 2 * 2 * run + index % run + (low - begin);
  merged[std::size_t{number} * task.k + position] = entry;
}

__global__ void __launch_bounds__(tuning::sort_threads)
    write_entries(SelectionTask task, const std::int64_t* entries, std::uint32_t first_part) {
  const std::uint32_t rank = blockIdx.x * tuning::sort_threads + threadIdx.x;
  if (rank >= task.k) return;
  const std::uint32_t number = first_part + blockIdx.y;
  const RowPart part(task, number);
  const PositionKey key = {entries[std::size_t{number} * task.k + rank]};
  part.best[rank] = __ldg(part.values + key.position());
  part.best_ids[rank] = part.ids.at(key.position());
}

// gridDim.y is limited to 65535: calls start(first_part, parts) for ranges of parts.
template <typename Start>
void for_part_ranges(const SelectionTask& task, const Start& start) {
  const std::size_t parts = task.rows * task.parts;
  for (std::size_t first = 0; first < parts; first += tuning::max_parts_per_launch)
    start(static_cast<std::uint32_t>(first),
          static_cast<unsigned>(std::min(parts - first, tuning::max_parts_per_launch)));
}

unsigned blocks_of(std::uint32_t count, std::uint32_t per_block) {
  return static_cast<unsigned>((std::uint64_t{count} + per_block - 1) / per_block);
}

}  // namespace

void launch_sort_runs(cudaStream_t stream, Ties ties, const SelectionTask& task, std::int64_t* entries) {
  const auto kernel = ties == Ties::positions    ? sort_runs<Ties::positions>
                      : ties == Ties::narrow_ids ? sort_runs<Ties::narrow_ids>
                                                 : sort_runs<Ties::wide_ids>;
  for_part_ranges(task, [&](std::uint32_t first, unsigned parts) {
    launch(kernel, dim3(blocks_of(task.k, tuning::sorted_run), parts), dim3(tuning::sort_threads), 0, stream,
           task, entries, first);
  });
}

void launch_merge_runs(cudaStream_t stream, Ties ties, const SelectionTask& task, std::uint32_t run,
                       const std::int64_t* entries, std::int64_t* merged) {
  const auto kernel = ties == Ties::positions    ? merge_runs<Ties::positions>
                      : ties == Ties::narrow_ids ? merge_runs<Ties::narrow_ids>
                                                 : merge_runs<Ties::wide_ids>;
  for_part_ranges(task, [&](std::uint32_t first, unsigned parts) {
    launch(kernel, dim3(blocks_of(task.k, tuning::sort_threads), parts), dim3(tuning::sort_threads), 0,
           stream, task, run, entries, merged, first);
  });
}

void launch_write_entries(cudaStream_t stream, const SelectionTask& task, const std::int64_t* entries) {
  for_part_ranges(task, [&](std::uint32_t first, unsigned parts) {
    launch(write_entries, dim3(blocks_of(task.k, tuning::sort_threads), parts), dim3(tuning::sort_threads), 0,
           stream, task, entries, first);
  });
}

}  // namespace nearwise::gpu
