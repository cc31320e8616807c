// Cuts a file into shards such that merging two of them keeps within the memory limit.
#include <algorithm>
#include <bit>

#include "core/check.h"
#include "core/checked.h"
#include "core/memory.h"
#include "core/neighbor_entry.h"
#include "graph/recall_sample.h"
#include "plan/pairs/pair_work.h"

namespace nearwise::plan {
namespace {

// 128 shards take 8128 merges.
constexpr std::size_t max_shards = 128;
constexpr std::size_t min_shard_rows = 256;
// Share of the rows that centroids are trained on: overlap * 32 / partition_rows
// (graph/build/partitions.cpp).
constexpr double trained_share = 0.13;

// Memory of a build or merge of `rows` rows by the shape alone, so that it is the same on every machine and
// at any number of threads; shape_of_pairs() then checks that it suffices on this one.
std::uint64_t bytes_by_shape(const GraphShape& shape, const GraphPlanOptions& options, std::size_t rows,
                             std::uint64_t limit) {
  constexpr std::uint64_t padding = 256;               // bytes per packed row in addition to its elements
  const graph::Tuning tuning = shard_tuning(options);  // needs more than that of pairs
  const std::uint64_t packed = shape.dim * sizeof(float) + padding;
  const std::uint64_t taken = std::min(tuning.list, 2 * tuning.sample);
  const std::uint64_t of_row = shape.row_bytes() + packed + (tuning.list + 1) * sizeof(NeighborEntry) +
                               options.degree * (sizeof(Id) + sizeof(float)) +
                               2 * tuning.overlap * sizeof(std::uint32_t);
  // These phases follow each other: training, partition search, NN-Descent.
  const auto training = static_cast<std::uint64_t>(
      trained_share * static_cast<double>(rows * (2 * shape.row_bytes() + packed)));
  const std::uint64_t searching =
      std::min(rows, graph::PartitionSearch::tile_rows) *
      (tuning.overlap * (sizeof(Id) + sizeof(float)) + shape.dim * sizeof(float) + 1024);
  const std::uint64_t drawing = rows * (2 * taken * sizeof(std::uint32_t) + sizeof(std::uint64_t));
  return rows * of_row + std::max({training, searching, drawing}) + limit / 8 +
         graph::PartitionSearch::working_bytes +
         graph::RecallSample::bytes(shaped(shape, shape.rows), options.degree, tuning.measured);
}

// The most rows of a build or a merge.
std::size_t rows_by_limit(const GraphShape& shape, const GraphPlanOptions& options, std::uint64_t limit) {
  std::size_t rows = 0;
  for (std::size_t step = std::bit_ceil(shape.rows); step != 0; step /= 2)
    if (rows + step <= shape.rows && bytes_by_shape(shape, options, rows + step, limit) <= limit)
      rows += step;
  return rows;
}

// Without blocks if there would be too many, or too small ones.
GraphShape cut(GraphShape shape, const GraphPlanOptions& options, std::uint64_t limit) {
  const std::size_t max_rows = rows_by_limit(shape, options, limit);
  shape.blocks = 0;
  if (shape.rows <= max_rows) {
    shape.block_rows = shape.rows;
    shape.blocks = 1;
  } else if (max_rows / 2 >= std::max(min_shard_rows, options.degree + 1)) {
    // Equal sizes: a smaller last shard would not save a merge.
    shape.block_rows = divide_up(shape.rows, divide_up(shape.rows, max_rows / 2));
    const std::size_t shards = divide_up(shape.rows, shape.block_rows);
    if (shards <= max_shards) shape.blocks = shards;
  }
  return shape;
}

// Maximum over all tasks on this machine.
std::uint64_t memory_of(const Context& context, const GraphShape& shape, const GraphPlanOptions& options) {
  const KnnGraphOptions graph = {
      .degree = options.degree, .metric = options.metric, .target_recall = options.target_recall};
  std::uint64_t most = std::max(
      {sample_memory(shape, options), measure_memory(shape, options),
       graph::Builder::bytes(context, shaped(shape, shape.block_rows), graph, shard_tuning(options))});
  const std::size_t rows = std::min(shape.rows, 2 * shape.block_rows);
  if (shape.blocks > 1)
    most = std::max(most, rows * shape.row_bytes() + graph::Builder::bytes(context, shaped(shape, rows),
                                                                           graph, pair_tuning(options)));
  return most;
}

}  // namespace

GraphShape shape_of_pairs(const Context& context, const RowsView& rows, const GraphPlanOptions& options) {
  GraphShape all;
  all.rows = rows.rows();
  all.dim = rows.dim();
  all.type = rows.type();
  all.measured_rows = measured_rows_of(all.rows);
  const auto cut_within = [&](std::uint64_t limit) {
    GraphShape shape = cut(all, options, usable_memory(limit));
    if (shape.blocks != 0 && memory_of(context, shape, options) > usable_memory(limit)) shape.blocks = 0;
    return shape;
  };
  GraphShape shape = cut_within(context.memory_limit());
  if (shape.blocks != 0) return shape;
  std::uint64_t enough = context.memory_limit();
  while (cut_within(enough).blocks == 0) enough += std::max<std::uint64_t>(enough / 8, 1 << 20);
  refuse_limit("plan_graph", context.memory_limit(), enough);
}

}  // namespace nearwise::plan
