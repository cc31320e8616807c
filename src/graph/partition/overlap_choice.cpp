#include "graph/partition/overlap_choice.h"

#include "core/check.h"

namespace nearwise::graph {

OverlapChoice::OverlapChoice(const RecallSample& sample, std::size_t max_overlap,
                             std::span<const std::optional<double>> reaches)
    : sample_(sample),
      max_overlap_(max_overlap),
      reaches_(reaches.begin(), reaches.end()),
      overlaps_(reaches.size(), std::vector<std::uint8_t>(sample.size() * sample.degree(), no_overlap)),
      partitions_(reaches.size(), std::vector<std::size_t>(sample.size())) {
  NEARWISE_ASSERT(max_overlap < no_overlap && !reaches.empty());
}

ChosenOverlap OverlapChoice::choose(double target) const {
  ChosenOverlap chosen = {.rule = {.overlap = max_overlap_, .reach = reaches_.back()},
                          .is_enough = false,
                          .predicted_recall = predict(reaches_.size() - 1, max_overlap_).value};
  std::size_t fewest = 0;
  for (std::size_t i = 0; i < reaches_.size(); ++i)
    for (std::size_t overlap = 1; overlap <= max_overlap_; ++overlap) {
      const RecallEstimate predicted = predict(i, overlap);
      if (predicted.low < target) continue;
      const std::size_t partitions = count_partitions(i, overlap);
      if (!chosen.is_enough || partitions < fewest) {
        chosen = {.rule = {.overlap = overlap, .reach = reaches_[i]},
                  .is_enough = true,
                  .predicted_recall = predicted.value};
        fewest = partitions;
      }
      break;  // a larger overlap only adds partitions
    }
  return chosen;
}

RecallEstimate OverlapChoice::predict(std::size_t reach, std::size_t overlap) const {
  std::vector<std::size_t> found(sample_.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto overlaps = std::span(overlaps_[reach]).subspan(i * sample_.degree(), sample_.degree());
    found[i] = static_cast<std::size_t>(
        std::ranges::count_if(overlaps, [&](std::uint8_t needed) { return needed <= overlap; }));
  }
  return sample_.estimate(found);
}

std::size_t OverlapChoice::count_partitions(std::size_t reach, std::size_t overlap) const {
  std::size_t sum = 0;
  for (const std::size_t partitions : partitions_[reach]) sum += std::min(partitions, overlap);
  return sum;
}

}  // namespace nearwise::graph
