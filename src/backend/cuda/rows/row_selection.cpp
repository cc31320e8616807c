#include "backend/cuda/rows/row_selection.h"

#include <algorithm>
#include <utility>

#include "backend/cuda/kernels/rows/reduce_rows.h"
#include "backend/cuda/kernels/select/radix_select.h"
#include "backend/cuda/kernels/select/select_rows.h"
#include "backend/cuda/kernels/select/sort_entries.h"
#include "core/checked.h"

namespace nearwise::gpu {
namespace {

constexpr std::size_t workspace_alignment = 256;
constexpr auto max_capacity = static_cast<std::size_t>(tuning::max_select_capacity);

std::size_t choose_parts(std::size_t rows, std::size_t cols, std::size_t k, const tuning::RowSplit& cuts) {
  NEARWISE_ASSERT(cuts.columns_per_entry >= 2);
  const std::size_t useful = cols / std::max(cuts.min_columns, cuts.columns_per_entry * k);
  return std::max<std::size_t>(1, std::min(useful, divide_up(cuts.target_parts, rows)));
}

// Uses the shortest warp queue with room for k. Long queues treat narrow ids as wide ones: their keys take as
// many registers, and each instance takes the compiler a minute.
template <Ties ties>
void select_in_registers(cudaStream_t stream, const SelectionTask& task) {
  constexpr Ties long_queue_ties = ties == Ties::narrow_ids ? Ties::wide_ids : ties;
  if (task.k <= 32)
    launch_select_rows<ties, 32>(stream, task);
  else if (task.k <= 64)
    launch_select_rows<ties, 64>(stream, task);
  else if (task.k <= 128)
    launch_select_rows<ties, 128>(stream, task);
  else if (task.k <= 256)
    launch_select_rows<ties, 256>(stream, task);
  else if (task.k <= 512)
    launch_select_rows<long_queue_ties, 512>(stream, task);
  else
    launch_select_rows<long_queue_ties, 1024>(stream, task);
}

}  // namespace

RowSelection::RowSelection(std::size_t rows, std::size_t cols, std::size_t k, const tuning::RowSplit& cuts)
    : k_(k) {
  const auto place = [&](std::size_t bytes) {
    return std::exchange(workspace_bytes_, workspace_bytes_ + round_up(bytes, workspace_alignment));
  };
  std::size_t max_parts = 1;
  for (std::size_t level_cols = cols;;) {
    Level level = {.cols = level_cols, .parts = choose_parts(rows, level_cols, k, cuts)};
    max_parts = std::max(max_parts, level.parts);
    if (level.parts > 1) {
      level.values_offset = place(rows * level.parts * k * sizeof(float));
      level.ids_offset = place(rows * level.parts * k * sizeof(std::int64_t));
    }
    levels_.push_back(level);
    if (level.parts == 1) break;
    level_cols = level.parts * k;
  }
  if (k > max_capacity) {
    const std::size_t bytes = rows * max_parts * k * sizeof(std::int64_t);
    entries_offset_ = place(bytes);
    if (k > tuning::sorted_run) sorted_entries_offset_ = place(bytes);
  }
}

void RowSelection::run(cudaStream_t stream, Ties ties, SelectionTask task, std::byte* workspace) const {
  float* const best = task.best;
  std::int64_t* const ids = task.ids;
  const std::size_t best_stride = task.best_stride;
  for (const Level& level : levels_) {
    task.cols = static_cast<std::uint32_t>(level.cols);
    task.parts = static_cast<std::uint32_t>(level.parts);
    const bool last = level.parts == 1;
    task.best = last ? best : reinterpret_cast<float*>(workspace + level.values_offset);
    task.ids = last ? ids : reinterpret_cast<std::int64_t*>(workspace + level.ids_offset);
    task.best_stride = last ? best_stride : level.parts * k_;
    run_level(stream, ties, task, workspace);
    // The output of the parts, with 64-bit ids, is the input of the next level.
    task.values = task.best;
    task.value_stride = task.best_stride;
    task.narrow_ids = nullptr;
    task.wide_ids = task.ids;
    task.id_stride = task.best_stride;
    if (ties == Ties::narrow_ids) ties = Ties::wide_ids;
  }
}

void RowSelection::run_level(cudaStream_t stream, Ties ties, const SelectionTask& task,
                             std::byte* workspace) const {
  if (k_ <= tuning::max_reduced_k) return launch_reduce_rows(stream, ties, task);
  if (k_ <= max_capacity) {
    const auto select = ties == Ties::positions    ? select_in_registers<Ties::positions>
                        : ties == Ties::narrow_ids ? select_in_registers<Ties::narrow_ids>
                                                   : select_in_registers<Ties::wide_ids>;
    select(stream, task);
    return;
  }
  auto* entries = reinterpret_cast<std::int64_t*>(workspace + entries_offset_);
  auto* merged = reinterpret_cast<std::int64_t*>(workspace + sorted_entries_offset_);
  launch_radix_select(stream, ties, task, entries);
  launch_sort_runs(stream, ties, task, entries);
  for (std::size_t run = tuning::sorted_run; run < k_; run *= 2) {
    launch_merge_runs(stream, ties, task, static_cast<std::uint32_t>(run), entries, merged);
    std::swap(entries, merged);
  }
  launch_write_entries(stream, task, entries);
}

}  // namespace nearwise::gpu
