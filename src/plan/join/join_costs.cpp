#include "plan/join/join_costs.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"
#include "graph/partition/partition_search.h"
#include "nearwise/exact.h"
#include "plan/partition/graph_costs.h"

namespace nearwise::plan {
namespace {

constexpr std::uint64_t work_file_bytes = 3 * 4096 + 4096;

std::uint64_t as_bytes_of(double bytes) { return static_cast<std::uint64_t>(std::ceil(bytes)); }

// The share of the pairs of different rows that are within the threshold. Part p of the queries is every
// step-th row from p on, compared with all rows: the first parts are like the others.
double share_within(const Context& context, const JoinWork& work, const RowsView& rows) {
  constexpr std::size_t max_compared = 2048;  // bounds the answers in memory at a time
  constexpr std::size_t max_queries = 64;
  constexpr std::size_t enough_pairs = 4096;  // a standard error of 1.6 % if they are independent
  const std::size_t step = divide_up(rows.rows(), max_queries);
  std::size_t within = 0;
  std::size_t compared = 0;
  for (std::size_t part = 0; part < step && within < enough_pairs; ++part) {
    const RowsView queries(rows.row(part), rows.type(), divide_up(rows.rows() - part, step), rows.dim(),
                           step * rows.stride_bytes());
    for (std::size_t first = 0; first < rows.rows(); first += max_compared) {
      const RowsView base = rows.slice(first, std::min(max_compared, rows.rows() - first));
      const RangeNeighbors near =
          range_search(context, queries, base, work.threshold, {.metric = work.metric});
      for (std::size_t query = 0; query < queries.rows(); ++query) {
        const std::size_t own = part + query * step;
        for (std::size_t i = near.offsets[query]; i < near.offsets[query + 1]; ++i)
          within += first + static_cast<std::size_t>(near.ids[i]) != own ? 1 : 0;
      }
    }
    compared += queries.rows() * (rows.rows() - 1);
  }
  return compared == 0 ? 0 : static_cast<double>(within) / static_cast<double>(compared);
}

}  // namespace

JoinCosts measure_join(const Context& context, const JoinWork& work, const RowsView& rows) {
  constexpr std::size_t max_sample = 8192;
  const Context silent = context.without_progress();
  const graph::RowSample sample =
      checked_sample(silent, work, rows, sample_rows(context, rows, max_sample), Random(0));
  const GraphCosts costs = measure_costs(silent, sample.view(), work.metric);
  const auto all = static_cast<double>(rows.rows());
  return {.pair = costs.pair,
          .gathered = costs.gathered,
          .merged = costs.merged,
          .found = std::max(all, share_within(silent, work, sample.view()) * all * (all - 1) / 2)};
}

// Work files, in bytes: 8 for each pair, which sides have twice, and 8 for each row.
PlannedTask cost_of_join(const JoinWork& work, const JoinCosts& costs, const RowsView& rows, std::size_t left,
                         std::size_t right) {
  const auto left_rows = static_cast<double>(work.block(left).count);
  const double compared =
      left == right ? left_rows * left_rows / 2 : left_rows * static_cast<double>(work.block(right).count);
  const double share = 2 * compared / (static_cast<double>(work.rows) * static_cast<double>(work.rows));
  const std::uint64_t row_bytes = row_bytes_of(rows);
  PlannedTask task;
  task.read_bytes = (work.block(left).count + (left == right ? 0 : work.block(right).count)) * row_bytes;
  task.written_bytes = as_bytes_of(8 * share * costs.found + 8 * left_rows) + work_file_bytes;
  task.seconds = costs.pair * compared;
  return task;
}

PlannedTask cost_of_train(const JoinWork& work, const JoinCosts& costs, const RowsView& rows) {
  const auto partitions = static_cast<double>(work.partitions.count);
  const auto sampled = static_cast<double>(work.partitions.sampled_rows);
  PlannedTask task;
  task.read_bytes = work.partitions.sampled_rows * row_bytes_of(rows);
  task.written_bytes =
      work.partitions.count * (rows.dim() + work.partitions.count) * sizeof(float) + work_file_bytes;
  // Two levels of k-means, each with about the square root of the clusters.
  task.seconds = graph::training_iterations * 2 * sampled * std::sqrt(partitions) * costs.pair;
  return task;
}

PlannedTask cost_of_assign(const JoinWork& work, const JoinCosts& costs, const RowsView& rows,
                           std::size_t block) {
  const auto count = static_cast<double>(work.block(block).count);
  const double stored = work.partitions.copies * count;
  const auto row_bytes = static_cast<double>(row_bytes_of(rows));
  PlannedTask task;
  task.read_bytes = as_bytes_of(count * row_bytes);
  task.written_bytes = as_bytes_of(stored * (row_bytes + 4)) + 16 * work.partitions.count + work_file_bytes;
  task.seconds = costs.pair * count * static_cast<double>(work.partitions.count) + costs.gathered * stored;
  return task;
}

PlannedTask cost_of_compare(const JoinWork& work, const JoinCosts& costs, const RowsView& rows) {
  const auto groups = static_cast<double>(work.partitions.groups);
  const double stored = work.partitions.copies * static_cast<double>(work.rows) / groups;
  const double found = (work.dedup ? 2 : 1) * costs.found / groups;
  PlannedTask task;
  task.read_bytes = as_bytes_of(stored * static_cast<double>(row_bytes_of(rows)));
  task.written_bytes = as_bytes_of(12 * found) + work_file_bytes;
  task.seconds =
      costs.pair * work.partitions.comparisons / groups + costs.gathered * stored + costs.merged * found;
  return task;
}

PlannedTask cost_of_sides(const JoinWork& work, const JoinCosts& costs, std::size_t block) {
  const auto rows = static_cast<double>(work.block(block).count);
  const double sides = (work.dedup ? 2 : 1) * costs.found * rows / static_cast<double>(work.rows);
  PlannedTask task;
  task.read_bytes = as_bytes_of(8 * sides + 8 * rows * static_cast<double>(work.blocks()));
  task.written_bytes = as_bytes_of(8 * sides + 8 * rows) + work_file_bytes;
  task.seconds = costs.merged * (sides + rows);
  return task;
}

PlannedTask cost_of_publish(const JoinWork& work, const JoinCosts& costs) {
  const auto rows = static_cast<double>(work.rows);
  PlannedTask task;
  task.read_bytes = as_bytes_of((work.dedup ? 16 : 24) * costs.found + 8 * rows);
  task.written_bytes =
      as_bytes_of(work.dedup ? 28 * rows : 8 * rows + 12 * costs.found) + 2 * work_file_bytes;
  task.seconds = costs.merged * (costs.found + rows);
  return task;
}

}  // namespace nearwise::plan
