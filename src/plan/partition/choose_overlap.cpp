#include "plan/partition/choose_overlap.h"

#include <algorithm>
#include <array>
#include <vector>

#include "backend/context_state.h"
#include "ops/gather_rows.h"
#include "plan/partition/exact_sample.h"
#include "plan/tasks/partial_neighbors.h"

namespace nearwise::plan {
namespace {

// On the synthetic set (1M x 128) a recall of 0.955 takes 2.1 partitions per row at a reach of 1.4, and 2.9
// at a reach that excludes none.
constexpr std::array<std::optional<double>, reach_count> reaches = {
    1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.45, 1.5, 1.55, 1.6, 1.7, 1.8, 1.9, 2.0, 2.25, 2.5, max_reach};

// nearest: the partitions of the sampled row at row `first`, then those of its exact neighbours.
void set_overlaps(graph::OverlapChoice& choice, std::size_t index, std::size_t max_overlap, Metric metric,
                  std::size_t degree, const Neighbors& nearest, std::size_t first) {
  for (std::size_t reach = 0; reach < reaches.size(); ++reach) {
    const graph::OverlapRule rule = {.overlap = max_overlap, .reach = reaches[reach]};
    const auto partitions_of = [&](std::size_t row) {
      return nearest.ids.row(row).first(rule.count(metric, nearest.distances.row(row)));
    };
    const std::span<const Id> own = partitions_of(first);
    choice.set_partitions(reach, index, own.size());
    for (std::size_t j = 0; j < degree; ++j)
      choice.set_overlap(reach, index, j,
                         graph::shared_overlap(own, std::span<const Id>(partitions_of(first + 1 + j))));
  }
}

void predict_from_partitions(const Context& context, const GraphWork& work, const PlanInput& input,
                             const graph::RecallSample& sample, const graph::PartitionSearch& search,
                             graph::OverlapChoice& choice) {
  const std::size_t list = sample.degree() + 1;  // the row itself first
  const std::size_t most = std::min(GraphShape::predicted_rows(work.options.degree), sample.size());
  ProgressMeter progress(context.state().options.progress, context.state().clock, "plan_graph",
                         sample.size());
  for (std::size_t first = 0; first < sample.size(); first += most) {
    const std::size_t count = std::min(most, sample.size() - first);
    const auto row_at = [&](std::size_t i) {
      const std::size_t index = first + i / list;
      return i % list == 0 ? sample.row(index)
                           : static_cast<std::size_t>(sample.nearest(index)[i % list - 1]);
    };
    const GatheredRows gathered(context, input.rows_at(count * list, row_at), count * list,
                                [&](std::size_t i) { return PlacedRow{.row = row_at(i), .place = i}; });
    const Neighbors nearest = search.nearest(gathered.view(), work.shape.overlap);
    for (std::size_t i = 0; i < count; ++i)
      set_overlaps(choice, first + i, work.shape.overlap, search.metric(), sample.degree(), nearest,
                   i * list);
    progress.add(count);
  }
}

void mark_found(const GraphWork& work, std::size_t pass, const graph::RecallSample& sample,
                graph::OverlapChoice& choice) {
  const std::vector<MergedBlock> blocks = merged_blocks(work, pass);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const MergedBlock& block = blocks[sample.row(i) / work.shape.block_rows];
    const auto found = block.ids.row(sample.row(i) % work.shape.block_rows);
    for (std::size_t j = 0; j < sample.degree(); ++j)
      if (std::ranges::find(found, static_cast<std::uint32_t>(sample.nearest(i)[j])) != found.end())
        for (std::size_t reach = 0; reach < reaches.size(); ++reach) choice.set_overlap(reach, i, j, 0);
  }
}

}  // namespace

graph::ChosenOverlap choose_overlap(const Context& context, const GraphWork& work, std::size_t pass,
                                    const graph::PartitionSearch& search) {
  if (work.shape.rows == 1) return {.rule = {.overlap = work.shape.overlap, .reach = 1}};
  const PlanInput input = work.input(context);
  const graph::RecallSample sample = load_sample(context, work, input);
  graph::OverlapChoice choice(sample, work.shape.overlap, reaches);
  predict_from_partitions(context, work, input, sample, search, choice);
  if (pass != 0) mark_found(work, pass - 1, sample, choice);
  return choice.choose(1 - (1 - cut_slack) * (1 - work.options.target_recall));
}

}  // namespace nearwise::plan
