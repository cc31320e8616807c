#include "plan/partition/graph_costs.h"

#include <algorithm>
#include <cmath>

#include "core/progress.h"
#include "graph/partition/super_partitions.h"
#include "graph/row_sample.h"
#include "nearwise/exact.h"

namespace nearwise::plan {
namespace {

double as_double(std::size_t number) { return static_cast<double>(number); }
std::uint64_t as_bytes(double bytes) { return static_cast<std::uint64_t>(std::ceil(bytes)); }

// Mean groups and partitions per row: typical values, used before `train` chooses (docs/algorithms/plans.md).
double copies(const GraphShape& shape) { return shape.groups == 1 ? 1 : 2.5; }
double mean_overlap(const GraphShape& shape) { return std::min(3.0, as_double(shape.overlap)); }
std::size_t mean_partitions(const GraphShape& shape) {
  return std::min(2 * shape.min_partitions, shape.partitions);
}
// Partitions compared with a row, relative to the mean number per super-partition.
constexpr double near_factor = 80;
double searched_partitions(const GraphShape& shape) {
  const std::size_t partitions = mean_partitions(shape);
  if (!shape.has_super_partitions(partitions)) return as_double(partitions);
  const double super_partitions = as_double(graph::SuperPartitions::max_count(partitions));
  return super_partitions +
         std::min(as_double(partitions), near_factor * as_double(partitions) / super_partitions);
}
// Cost of a pair within a partition, in pairs of exact search (graph/build/builder.cpp).
constexpr double partition_pair = 2;
// Trials of choose_partitions(), and passes over the sample in each: k-means iterations and one assignment.
constexpr double mean_trials = 2;
constexpr double training_rounds = graph::training_iterations + 1;
constexpr std::uint64_t file_bytes = 8192;

}  // namespace

GraphCosts measure_costs(const Context& context, const RowsView& rows, Metric metric) {
  constexpr std::size_t max_rows = 8192;
  constexpr std::size_t max_queries = 512;
  const Context silent = context.without_progress();
  const std::size_t count = std::min(rows.rows(), max_rows);
  const graph::RowSample sample(silent, rows, count, Random(0));
  const RowsView queries = sample.view().slice(0, std::min(count, max_queries));
  const std::size_t k = std::min<std::size_t>(8, count);
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const double start = machine_clock();
    static_cast<void>(knn(silent, queries, sample.view(), k, {.metric = metric}));
    const double seconds = machine_clock() - start;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return {.pair = best / (as_double(count) * as_double(queries.rows())),
          .gathered = 2e-7 + 1e-9 * as_double(rows.dim() * element_size(rows.type())),
          .merged = 1e-7 / context.threads()};
}

PlannedTask cost_of_sample(const GraphShape& shape, const GraphCosts& costs, std::size_t degree) {
  PlannedTask task;
  task.read_bytes = shape.rows * shape.row_bytes();
  task.written_bytes = shape.measured_rows * (degree * sizeof(Id) + sizeof(float)) + 3 * file_bytes;
  task.seconds = costs.pair * as_double(shape.rows) * as_double(shape.measured_rows);
  return task;
}

PlannedTask cost_of_train(const GraphShape& shape, const GraphCosts& costs, std::size_t degree) {
  const std::size_t partitions = mean_partitions(shape);
  const double centroids = partitions <= GraphShape::flat_partitions ? as_double(partitions)
                                                                     : 2 * std::sqrt(as_double(partitions));
  const std::size_t predicted = shape.measured_rows * (degree + 1);
  const std::size_t size_sample = std::min(shape.sampled_rows, GraphShape::size_sample_rows);
  PlannedTask task;
  task.read_bytes = (shape.sampled_rows + predicted) * shape.row_bytes();
  task.written_bytes = shape.partitions * shape.dim * sizeof(float) + file_bytes;
  task.seconds = costs.gathered * as_double(shape.sampled_rows + predicted) +
                 mean_trials * costs.pair *
                     (training_rounds * as_double(shape.sampled_rows) * centroids +
                      as_double(predicted + size_sample) * searched_partitions(shape));
  return task;
}

PlannedTask cost_of_assign(const GraphShape& shape, const GraphCosts& costs, std::size_t block) {
  const std::size_t rows = shape.rows_of(block);
  PlannedTask task;
  task.read_bytes = rows * shape.row_bytes() + shape.partitions * shape.dim * sizeof(float);
  task.written_bytes = rows * shape.overlap * 2 * sizeof(std::uint32_t) + 4 * file_bytes;
  if (shape.groups > 1)
    task.written_bytes +=
        as_bytes(copies(shape) * as_double(rows * (shape.row_bytes() + sizeof(std::uint32_t))));
  task.seconds = costs.pair * as_double(rows) * searched_partitions(shape);
  return task;
}

PlannedTask cost_of_build(const GraphShape& shape, const GraphCosts& costs, std::size_t degree) {
  const double rows = copies(shape) * as_double(shape.rows) / as_double(shape.groups);
  const double members = as_double(shape.rows) * mean_overlap(shape) / as_double(shape.groups);
  const double partition_rows =
      as_double(shape.rows) * mean_overlap(shape) / as_double(mean_partitions(shape));
  PlannedTask task;
  task.read_bytes = as_bytes(rows * as_double(shape.row_bytes()) + members * 8);
  task.written_bytes = as_bytes(rows * as_double(4 + degree * 8)) + 4 * file_bytes;
  task.seconds = costs.gathered * rows + costs.pair * partition_pair * members * partition_rows;
  return task;
}

PlannedTask cost_of_merge(const GraphShape& shape, const GraphCosts& costs, std::size_t degree,
                          std::size_t block) {
  const double entries = as_double(shape.rows_of(block) * degree);
  PlannedTask task;
  task.read_bytes = as_bytes(copies(shape) * entries * 8);
  task.written_bytes = as_bytes(entries * 8) + 3 * file_bytes;
  task.seconds = copies(shape) * entries * costs.merged;
  return task;
}

PlannedTask cost_of_measure(const GraphShape& shape, const GraphCosts& costs, std::size_t degree) {
  const std::size_t looked_at = shape.measured_rows * (degree + 1);
  PlannedTask task;
  task.read_bytes = looked_at * shape.row_bytes();
  task.written_bytes = 2 * file_bytes;
  task.seconds = costs.gathered * as_double(looked_at);
  return task;
}

PlannedTask cost_of_finish(const GraphShape& shape, const GraphCosts& costs, std::size_t degree) {
  const double entries = as_double(shape.rows * degree);
  PlannedTask task;
  task.read_bytes = as_bytes(entries * 8);
  task.written_bytes = as_bytes(entries * 12) + 4 * file_bytes;
  task.seconds = entries * costs.merged / 4;
  return task;
}

}  // namespace nearwise::plan
