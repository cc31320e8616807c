#include "plan/partition/choose_partitions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "plan/partition/train_centroids.h"

namespace nearwise::plan {
namespace {

// Cost of one more partition per row, in pairs: file entries, list scans and re-evaluated rows. 3M rows of
// the synthetic set took 32 s with 3.3 partitions of 1,000 rows per row, 28 s with 2.6 of 1,600, 24 s with
// 1.7 of 2,200.
constexpr double pairs_per_copy = 10'000;
constexpr auto whole_partition_rows = static_cast<double>(graph::max_partition_rows);

struct Trial {
  ChosenPartitions partitions;
  double cost = 0;       // pairs per row
  bool is_whole = true;  // the pairs lost to cut partitions stay within cut_slack

  bool is_sufficient() const { return partitions.overlap.is_enough && is_whole; }
  bool is_better_than(const Trial& other) const {
    if (is_sufficient() != other.is_sufficient()) return is_sufficient();
    return is_sufficient() ? cost < other.cost
                           : partitions.overlap.predicted_recall > other.partitions.overlap.predicted_recall;
  }
};

void estimate_cost(const GraphWork& work, Trial& trial) {
  std::vector<std::size_t> members(trial.partitions.centroids.rows());
  for (const std::uint32_t partition : trial.partitions.sampled.span())
    if (partition != graph::no_partition) ++members[partition];
  const std::size_t sampled_rows = trial.partitions.sampled.size() / trial.partitions.overlap.rule.overlap;
  const auto rows = static_cast<double>(sampled_rows);
  const double rows_per_sampled = static_cast<double>(work.shape.rows) / rows;
  double cut = 0;  // estimated share of pairs lost because their partition is cut
  for (const std::size_t sampled : members) {
    if (sampled == 0) continue;
    const auto count = static_cast<double>(sampled);
    const double all = count * rows_per_sampled;
    trial.cost += count / rows * (pairs_per_copy + std::min(all, whole_partition_rows));
    cut += count / rows * std::max(0.0, 1 - whole_partition_rows / all);
  }
  trial.is_whole = cut <= cut_slack * (1 - work.options.target_recall);
}

Trial make_trial(const Context& context, const GraphWork& work, std::size_t pass, const RowsView& sample,
                 const RowsView& size_sample, std::size_t count) {
  const Metric metric = graph::partition_metric(work.options.metric);
  // In rows that are searched; training takes about a tenth of the searches.
  const auto predicted = static_cast<double>(work.shape.measured_rows * (work.options.degree + 1));
  const auto sampled = static_cast<double>(size_sample.rows());
  Stages stages(context, "plan_graph");
  Trial trial;
  ChosenPartitions& partitions = trial.partitions;
  partitions.centroids =
      train_centroids(stages.next((predicted + sampled) / 10, predicted + sampled), metric, sample, count);
  if (work.shape.has_super_partitions(count))
    partitions.super_partitions = graph::SuperPartitions::make(
        context.without_progress(), partitions.centroids, sample, work.shape.overlap, metric);
  else
    partitions.super_partitions.centroids = Matrix<float>(0, work.shape.dim);
  const auto search_with = [&](const Context& own) {
    return graph::PartitionSearch(own, partitions.centroids, partitions.super_partitions.view(), metric);
  };
  partitions.overlap =
      choose_overlap(stages.next(predicted, sampled), work, pass, search_with(context.without_progress()));
  const graph::OverlapRule& rule = partitions.overlap.rule;
  partitions.sampled = Buffer<std::uint32_t>(*context.state().budget, size_sample.rows() * rule.overlap);
  search_with(stages.next(sampled, 0)).find(size_sample, rule, partitions.sampled.span());
  estimate_cost(work, trial);
  return trial;
}

}  // namespace

// Tries the largest partitions first, which train fastest, and doubles their number while the cost falls.
ChosenPartitions choose_partitions(const Context& context, const GraphWork& work, std::size_t pass,
                                   const RowsView& sample, const RowsView& size_sample) {
  const std::size_t most = work.shape.partitions;
  Stages stages(context, "plan_graph");
  const auto make = [&](std::size_t partitions, double rest) {
    const Context own = stages.next(static_cast<double>(partitions), partitions < most ? rest : 0);
    return make_trial(own, work, pass, sample, size_sample, partitions);
  };
  std::size_t count = work.shape.min_partitions;
  // After the second, of about twice the cost, most have no further trial.
  Trial best = make(count, 2 * static_cast<double>(count));
  double cost = best.cost;
  bool falls = true;
  while (count < most && (falls || !best.is_sufficient())) {
    count = std::min(2 * count, most);
    Trial next = make(count, static_cast<double>(count));
    falls = next.cost < std::exchange(cost, next.cost);
    if (next.is_better_than(best)) best = std::move(next);
  }
  return std::move(best.partitions);
}

}  // namespace nearwise::plan
