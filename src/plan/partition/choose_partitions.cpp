#include "plan/partition/choose_partitions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "graph/build/partitions.h"
#include "nearwise/kmeans.h"
#include "plan/partition/partition_search.h"

namespace nearwise::plan {
namespace {

// As few as in memory: partitions need not be good, only not bad.
constexpr std::size_t iterations = 4;
// A row in one more partition is a place in files, a list to be scanned for and rows to be looked at closely: as much as so many pairs,
// of which each row has as many as its partitions have members. 3M rows of the synthetic set took 32 s in 3.3 partitions of 1,000 rows
// each, 28 s in 2.6 of 1,600, 24 s in 1.7 of 2,200.
constexpr double pairs_of_copy = 10'000;
// Larger partitions are cut, and rows that were predicted to meet do not.
constexpr auto whole_partition_rows = static_cast<double>(graph::max_partition_rows);

struct Trial {
  ChosenPartitions partitions;
  double cost = 0;    // of a row, in pairs
  bool whole = true;  // as good as all meetings take place

  bool will_do() const { return partitions.chosen.is_enough && whole; }
  bool is_better_than(const Trial& other) const {
    if (will_do() != other.will_do()) return will_do();
    return will_do() ? cost < other.cost : partitions.chosen.predicted > other.partitions.chosen.predicted;
  }
};

Matrix<float> train(const Context& context, Metric metric, const RowsView& sample, std::size_t partitions) {
  const KMeansOptions options = {.metric = metric, .iterations = iterations, .tolerance = 0};
  const auto training = partitions <= GraphShape::flat_partitions ? train_kmeans : train_hierarchical_kmeans;
  // As many for each, however many partitions: the sample is for the most.
  const std::size_t step =
      std::max<std::size_t>(1, sample.rows() / (partitions * GraphShape::rows_per_partition));
  const RowsView some(sample.data(), sample.type(), sample.rows() / step, sample.dim(),
                      sample.stride_bytes() * step);
  return training(context, some, partitions, options).centroids;
}

void estimate_cost(const GraphWork& work, Trial& trial) {
  std::vector<std::size_t> members(trial.partitions.centroids.rows());
  for (const std::uint32_t partition : trial.partitions.sampled.span())
    if (partition != no_row) ++members[partition];
  const std::size_t size_sample = trial.partitions.sampled.size() / trial.partitions.chosen.rule.overlap;
  const auto rows = static_cast<double>(size_sample);
  const double rows_of_each = static_cast<double>(work.shape.rows) / rows;
  double cut = 0;  // share of meetings that do not take place, about
  for (const std::size_t sampled : members) {
    if (sampled == 0) continue;
    const auto count = static_cast<double>(sampled);
    const double all = count * rows_of_each;
    trial.cost += count / rows * (pairs_of_copy + std::min(all, whole_partition_rows));
    cut += count / rows * std::max(0.0, 1 - whole_partition_rows / all);
  }
  trial.whole = cut <= share_for_cuts * (1 - work.options.recall);
}

Trial make_trial(const Context& context, const GraphWork& work, std::size_t pass, const RowsView& sample,
                 const RowsView& size_sample, std::size_t count) {
  const Metric metric = partition_metric(work.options.metric);
  Trial trial;
  ChosenPartitions& partitions = trial.partitions;
  partitions.centroids = train(context, metric, sample, count);
  if (work.shape.has_super_partitions(count))
    partitions.super_partitions =
        SuperPartitions::make(context, partitions.centroids, sample, work.shape.overlap, metric);
  else
    partitions.super_partitions.centres = Matrix<float>(0, work.shape.dim);
  const PartitionSearch search(context, partitions.centroids, partitions.super_partitions.view(), metric);
  partitions.chosen = choose_rule(context, work, pass, search);
  partitions.sampled =
      Buffer<std::uint32_t>(*context.state().budget, size_sample.rows() * partitions.chosen.rule.overlap);
  search.find(size_sample, partitions.chosen.rule, partitions.sampled.span());
  estimate_cost(work, trial);
  return trial;
}

}  // namespace

// From the largest partitions on, which are trained in no time, twice as many each time while costs fall.
ChosenPartitions choose_partitions(const Context& context, const GraphWork& work, std::size_t pass,
                                   const RowsView& sample, const RowsView& size_sample) {
  std::size_t count = work.shape.min_partitions;
  Trial best = make_trial(context, work, pass, sample, size_sample, count);
  double cost = best.cost;
  bool falls = true;
  while (count < work.shape.partitions && (falls || !best.will_do())) {
    count = std::min(2 * count, work.shape.partitions);
    Trial next = make_trial(context, work, pass, sample, size_sample, count);
    falls = next.cost < std::exchange(cost, next.cost);
    if (next.is_better_than(best)) best = std::move(next);
  }
  return std::move(best.partitions);
}

}  // namespace nearwise::plan
