// Sizes of blocks, groups and batches that keep every task within the memory limit.
#include <algorithm>
#include <cmath>

#include "cluster/training.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/memory.h"
#include "graph/row_sample.h"
#include "ops/memory_limit.h"
#include "plan/partition/choose_overlap.h"
#include "plan/tasks/graph_tasks.h"
#include "plan/tasks/graph_work.h"
#include "plan/tasks/write_rows.h"

namespace nearwise::plan {
namespace {

// Mean rows of the largest partitions tried, at an overlap of 1: an eighth of the limit, so that hardly any
// is cut.
constexpr std::size_t max_mean_rows = graph::max_partition_rows / 8;
// Mean number of groups that a row is in, at most; determines the number of planned groups. If it is less,
// some groups stay empty; if more, groups are read in several batches.
constexpr double max_copies = 4;
constexpr std::size_t min_block_rows = 1024;
// Smaller blocks take less than 0.1 s, less than a cluster needs to start a task.
constexpr std::size_t small_block_rows = std::size_t{1} << 16;
constexpr std::size_t max_block_rows = std::size_t{1} << 20;
constexpr std::size_t default_blocks = 8;
constexpr std::size_t max_measured_rows = 10'000;

// GroupRows: a bit per row of the file, and a count per 64 rows.
std::uint64_t bits_of_rows(const GraphShape& shape) {
  return (shape.rows / 64 + 1) * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
}

std::uint64_t batch_memory(const Context& context, const GraphShape& shape, const GraphPlanOptions& options,
                           std::size_t rows) {
  const KnnGraphOptions graph = {
      .degree = options.degree, .metric = options.metric, .target_recall = options.target_recall};
  // Vectors, row numbers, members of partitions, and bits per row of the file.
  return rows * (shape.row_bytes() + sizeof(std::uint64_t) + 2 * shape.overlap * sizeof(std::uint32_t)) +
         bits_of_rows(shape) + writing_bytes +
         graph::Builder::bytes(context, shaped(shape, rows), graph, shape.tuning);
}

// Batch rows from the limit alone, so that they are the same on every machine; shape_of() then checks that
// they fit on this one.
std::size_t batch_by_limit(const GraphShape& shape, const GraphPlanOptions& options, std::uint64_t limit) {
  constexpr std::uint64_t padding = 128;  // bytes per packed row in addition to its elements
  const std::uint64_t taken = std::min(shape.tuning.list, 2 * shape.tuning.sample);
  const std::uint64_t of_row = shape.row_bytes() + sizeof(std::uint64_t) +
                               2 * shape.overlap * sizeof(std::uint32_t) + shape.dim * sizeof(float) +
                               padding + (shape.tuning.list + 1) * sizeof(NeighborEntry) +
                               options.degree * (sizeof(Id) + sizeof(float)) +
                               2 * taken * sizeof(std::uint32_t) + sizeof(std::uint64_t);
  const std::uint64_t fixed = limit / 8 + graph::PartitionSearch::working_bytes + bits_of_rows(shape);
  return limit <= fixed ? 0 : (limit - fixed) / of_row;
}

std::uint64_t partition_search_memory(const GraphShape& shape, std::size_t rows) {
  const RowsView searched = shaped(shape, rows);
  const std::size_t compared = std::min(shape.partitions, shape.compared_partitions);
  const std::uint64_t search =
      std::max(graph::PartitionSearch::bytes(searched, compared, false, shape.overlap),
               graph::PartitionSearch::bytes(searched, shape.partitions,
                                             shape.has_super_partitions(shape.partitions), shape.overlap));
  return shape.partitions * shape.dim * sizeof(float) + search;
}

}  // namespace

std::uint64_t sample_memory(const GraphShape& shape, const GraphPlanOptions& options) {
  return measure_memory(shape, options) + shape.measured_rows * (shape.dim * sizeof(float) + 1024) +
         graph::PartitionSearch::working_bytes;
}

std::uint64_t train_memory(const Context& context, const GraphShape& shape, const GraphPlanOptions& options) {
  const RowsView sample = shaped(shape, shape.sampled_rows);
  // Two levels: the second needs at most a copy of all rows in addition.
  const auto first_level =
      std::max(std::min(shape.partitions, GraphShape::flat_partitions),
               static_cast<std::size_t>(std::sqrt(static_cast<double>(shape.partitions))));
  const std::uint64_t training = graph::RowSample::bytes(sample, shape.sampled_rows) +
                                 cluster::training_bytes(context, sample, first_level,
                                                         {.metric = graph::partition_metric(options.metric)});
  const std::size_t predicted =
      std::min(GraphShape::predicted_rows(options.degree), shape.measured_rows) * (options.degree + 1);
  const std::size_t size_sample = std::min(shape.sampled_rows, GraphShape::size_sample_rows);
  // OverlapChoice: for each reach a byte per neighbour and a count per row of the sample.
  const std::uint64_t prediction = reach_count * shape.measured_rows * (options.degree + sizeof(std::size_t));
  const std::uint64_t choosing =
      measure_memory(shape, options) + prediction +
      std::max(predicted, size_sample) * (shape.row_bytes() + shape.overlap * (sizeof(Id) + sizeof(float)));
  const std::uint64_t super_partitions =
      shape.has_super_partitions(shape.partitions)
          ? graph::SuperPartitions::bytes(context, shape.partitions, shape.dim, shape.overlap)
          : 0;
  // The best trial so far is kept while the next one is made.
  const std::uint64_t best = shape.partitions * shape.dim * sizeof(float) +
                             size_sample * (shape.row_bytes() + shape.overlap * sizeof(std::uint32_t));
  return graph::RowSample::bytes(sample, shape.sampled_rows) + best +
         shape.partitions * shape.dim * sizeof(float) +
         std::max({training, super_partitions,
                   choosing + partition_search_memory(shape, std::max(predicted, size_sample))});
}

std::uint64_t assign_memory(const GraphShape& shape) {
  return 4 * shape.block_rows * shape.overlap * sizeof(std::uint32_t) +
         shape.partitions * sizeof(std::uint64_t) +
         partition_search_memory(shape, std::min(graph::PartitionSearch::tile_rows, shape.block_rows));
}

std::uint64_t build_memory(const Context& context, const GraphShape& shape, const GraphPlanOptions& options) {
  return batch_memory(context, shape, options, std::min(shape.batch_rows, shape.rows));
}

std::uint64_t merge_memory(const GraphShape& shape, const GraphPlanOptions& options) {
  return shape.block_rows * options.degree * (sizeof(std::uint32_t) + sizeof(float)) +
         graph::PartitionSearch::working_bytes;
}

std::uint64_t measure_memory(const GraphShape& shape, const GraphPlanOptions& options) {
  return graph::RecallSample::bytes(shaped(shape, shape.rows), options.degree, shape.measured_rows) +
         shape.measured_rows * options.degree * sizeof(Id);
}

std::size_t measured_rows_of(std::size_t rows) {
  return std::min(rows, std::clamp<std::size_t>(rows / 20, 1000, max_measured_rows));
}

namespace {

// The shape within a limit, whether or not it suffices.
GraphShape shape_within(std::uint64_t memory_limit, const RowsView& rows, const GraphPlanOptions& options) {
  GraphShape shape;
  shape.rows = rows.rows();
  shape.dim = rows.dim();
  shape.type = rows.type();
  shape.tuning = graph::default_tuning(options.degree, options.target_recall);
  shape.tuning.measured = std::min<std::size_t>(1000, shape.rows);
  shape.partitions =
      std::max<std::size_t>(1, shape.rows * shape.tuning.overlap / shape.tuning.partition_rows);
  shape.overlap = std::min(shape.tuning.overlap, shape.partitions);
  shape.min_partitions = shape.partitions;
  while (shape.min_partitions / 2 >= 4 * shape.overlap &&
         shape.rows / (shape.min_partitions / 2) <= max_mean_rows)
    shape.min_partitions /= 2;
  shape.measured_rows = measured_rows_of(shape.rows);

  const std::uint64_t limit = usable_memory(memory_limit);
  // The training sample takes at most a sixth of the limit.
  const std::size_t affordable = limit / 6 / std::max<std::size_t>(1, shape.row_bytes());
  shape.sampled_rows = std::min(
      shape.rows,
      std::max(shape.partitions, std::min(shape.partitions * GraphShape::rows_per_partition, affordable)));
  shape.block_rows = std::clamp(divide_up(shape.rows, default_blocks), small_block_rows, max_block_rows);
  shape.block_rows = std::min(shape.block_rows, shape.rows);
  while (assign_memory(shape) > limit && shape.block_rows / 2 >= min_block_rows) shape.block_rows /= 2;
  shape.blocks = divide_up(shape.rows, shape.block_rows);

  shape.tuning.overlap = 0;
  shape.batch_rows = std::max(2 * graph::max_partition_rows, batch_by_limit(shape, options, limit));
  return shape;
}

// The least limit with this much usable memory.
std::uint64_t limit_for(std::uint64_t memory) {
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(memory) / share_of_limit)) + 1;
}

std::uint64_t most_memory(const Context& context, const GraphShape& shape, const GraphPlanOptions& options) {
  return std::max({sample_memory(shape, options), train_memory(context, shape, options), assign_memory(shape),
                   merge_memory(shape, options), build_memory(context, shape, options)});
}

}  // namespace

std::uint64_t sufficient_limit(const Context& context, const RowsView& rows, const GraphPlanOptions& options,
                               std::uint64_t limit) {
  // With more memory the shape changes and may take more: the limit is one that its own shape keeps.
  for (std::uint64_t more = 0;
       (more = most_memory(context, shape_within(limit, rows, options), options)) > usable_memory(limit);)
    limit = limit_for(more);
  return limit;
}

GraphShape shape_of(const Context& context, const RowsView& rows, const GraphPlanOptions& options) {
  const std::uint64_t sufficient = sufficient_limit(context, rows, options, context.memory_limit());
  if (sufficient > context.memory_limit()) refuse_limit("plan_graph", context.memory_limit(), sufficient);
  GraphShape shape = shape_within(context.memory_limit(), rows, options);
  if (shape.rows > shape.batch_rows)
    shape.groups = std::min(
        shape.partitions, static_cast<std::size_t>(std::ceil(max_copies * static_cast<double>(shape.rows) /
                                                             (0.9 * static_cast<double>(shape.batch_rows)))));
  return shape;
}

}  // namespace nearwise::plan
