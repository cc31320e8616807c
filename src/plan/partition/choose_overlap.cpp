#include "plan/partition/choose_overlap.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "backend/context_state.h"
#include "plan/partition/exact_sample.h"
#include "plan/tasks/partial_neighbors.h"

namespace nearwise::plan {
namespace {

// Each with any number of partitions. On the synthetic set (1M x 128) a recall of 0.955 takes 2.1 partitions per row with a reach of 1.4,
// and 2.9 without one that matters.
constexpr std::array<double, OverlapRule::reaches> reaches = {
    1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.45, 1.5, 1.55, 1.6, 1.7, 1.8, 1.9, 2.0, 2.25, 2.5, 3.0};

// What every rule would do for the sample.
class RecallPrediction {
  static constexpr std::uint8_t never = 255;  // more partitions than a row may be in

 public:
  RecallPrediction(const GraphWork& work, const graph::RecallSample& sample)
      : most_(work.shape.overlap), sample_(sample) {
    for (std::size_t i = 0; i < reaches.size(); ++i) {
      overlaps_.emplace_back(sample.size() * sample.degree(), never);
      partitions_.emplace_back(sample.size());
    }
  }

  // nearest: the partitions of the sample's row, and those of its neighbours.
  void note(std::size_t index, Metric metric, const Neighbors& nearest, std::size_t first) {
    for (std::size_t i = 0; i < reaches.size(); ++i) {
      const OverlapRule rule = {.overlap = most_, .reach = reaches[i]};
      const auto partitions_of = [&](std::size_t place) {
        return nearest.ids.row(place).first(rule.count(metric, nearest.distances.row(place)));
      };
      partitions_[i][index] = partitions_of(first).size();
      for (std::size_t j = 0; j < sample_.degree(); ++j)
        overlaps_[i][index * sample_.degree() + j] = static_cast<std::uint8_t>(
            std::min<std::size_t>(never, shared_overlap(partitions_of(first), partitions_of(first + 1 + j))));
    }
  }

  void note_found(std::size_t index, std::size_t neighbor) {
    for (auto& met : overlaps_) met[index * sample_.degree() + neighbor] = 0;
  }

  ChosenRule choose(double recall) const {
    const double wanted = 1 - (1 - share_for_cuts) * (1 - recall);
    ChosenRule chosen = {.rule = {.overlap = most_, .reach = reaches.back()}};
    chosen.predicted = predict(reaches.size() - 1, most_).value;
    std::size_t fewest = 0;
    for (std::size_t i = 0; i < reaches.size(); ++i)
      for (std::size_t overlap = 1; overlap <= most_; ++overlap) {
        const RecallEstimate estimate = predict(i, overlap);
        if (estimate.low < wanted) continue;
        const std::size_t partitions = partitions_with(i, overlap);
        if (!chosen.is_enough || partitions < fewest) {
          chosen = {.rule = {.overlap = overlap, .reach = reaches[i]},
                    .is_enough = true,
                    .predicted = estimate.value};
          fewest = partitions;
        }
        break;  // more partitions are more
      }
    return chosen;
  }

 private:
  RecallEstimate predict(std::size_t reach, std::size_t overlap) const {
    std::vector<std::size_t> counts(sample_.size());
    for (std::size_t i = 0; i < sample_.size(); ++i)
      counts[i] = static_cast<std::size_t>(
          std::ranges::count_if(std::span(overlaps_[reach]).subspan(i * sample_.degree(), sample_.degree()),
                                [&](std::uint8_t least) { return least <= overlap; }));
    return sample_.estimate_of(counts);
  }

  std::size_t partitions_with(std::size_t reach, std::size_t overlap) const {
    std::size_t sum = 0;
    for (const std::size_t partitions : partitions_[reach]) sum += std::min(partitions, overlap);
    return sum;
  }

  const std::size_t most_;
  const graph::RecallSample& sample_;
  std::vector<std::vector<std::uint8_t>>
      overlaps_;  // [reaches][sample, degree] with how many partitions; 0: known
  std::vector<std::vector<std::size_t>> partitions_;  // [reaches][sample] of the row
};

void note_partitions(const Context& context, const GraphWork& work, const RowsView& rows,
                     const graph::RecallSample& sample, const PartitionSearch& search,
                     RecallPrediction& prediction) {
  const std::size_t row_bytes = work.shape.row_bytes();
  const std::size_t of_row = sample.degree() + 1;  // itself first
  const std::size_t most = std::min(GraphShape::predicted_rows(work.options.degree), sample.size());
  Buffer<std::byte> gathered(*context.state().budget, most * of_row * row_bytes);
  for (std::size_t first = 0; first < sample.size(); first += most) {
    context.state().cancel.check();
    const std::size_t count = std::min(most, sample.size() - first);
    std::byte* to = gathered.data();
    const auto take = [&](std::size_t row) {
      std::memcpy(to, rows.row(row), row_bytes);
      to += row_bytes;
    };
    for (std::size_t i = first; i < first + count; ++i) {
      take(sample.row(i));
      for (const Id id : sample.nearest(i)) take(static_cast<std::size_t>(id));
    }
    const Neighbors nearest = search.nearest(
        {gathered.data(), work.shape.type, count * of_row, work.shape.dim, row_bytes}, work.shape.overlap);
    for (std::size_t i = 0; i < count; ++i) prediction.note(first + i, search.metric(), nearest, i * of_row);
  }
}

// What an earlier pass has found is met already.
void note_found(const GraphWork& work, std::size_t pass, const graph::RecallSample& sample,
                RecallPrediction& prediction) {
  const std::vector<MergedBlock> blocks = merged_blocks(work, pass);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const MergedBlock& block = blocks[sample.row(i) / work.shape.block_rows];
    const auto known = block.ids.row(sample.row(i) % work.shape.block_rows);
    for (std::size_t j = 0; j < sample.degree(); ++j)
      if (std::ranges::find(known, static_cast<std::uint32_t>(sample.nearest(i)[j])) != known.end())
        prediction.note_found(i, j);
  }
}

}  // namespace

std::size_t shared_overlap(std::span<const Id> partitions, std::span<const Id> others) {
  std::size_t least = no_shared_partition;
  for (std::size_t i = 0; i < partitions.size() && partitions[i] != no_id; ++i)
    for (std::size_t j = 0; j < others.size(); ++j)
      if (partitions[i] == others[j]) least = std::min(least, std::max(i, j) + 1);
  return least;
}

ChosenRule choose_rule(const Context& context, const GraphWork& work, std::size_t pass,
                       const PartitionSearch& search) {
  if (work.shape.rows == 1) return {.rule = {.overlap = work.shape.overlap}};
  const VectorFile file = work.open();
  const graph::RecallSample sample = taken_sample(context, work, file.rows());
  RecallPrediction prediction(work, sample);
  note_partitions(context, work, file.rows(), sample, search, prediction);
  if (pass != 0) note_found(work, pass - 1, sample, prediction);
  return prediction.choose(work.options.recall);
}

}  // namespace nearwise::plan
