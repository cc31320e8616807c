// Chooses in how many of its nearest partitions a row is: the fewest that reach the target recall.
//
// The pairs compared grow with the square of the overlap. Whether two neighbours will be compared follows
// from their partitions alone, so the recall of every rule can be predicted on a sample before any pair is
// compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/partition/partition_search.h"
#include "graph/recall_sample.h"

namespace nearwise::graph {

inline constexpr std::size_t no_overlap = 255;

// The smallest overlap at which two rows share a partition, given the partitions of each, nearest first; -1
// (no_id, no_partition) ends a list. no_overlap: they share none.
template <typename T>
std::size_t shared_overlap(std::span<const T> partitions, std::span<const T> others) {
  std::size_t smallest = no_overlap;
  for (std::size_t i = 0; i < partitions.size() && partitions[i] != static_cast<T>(-1); ++i)
    for (std::size_t j = 0; j < others.size(); ++j)
      if (partitions[i] == others[j]) smallest = std::min(smallest, std::max(i, j) + 1);
  return smallest;
}

struct ChosenOverlap {
  OverlapRule rule;
  bool is_enough = false;       // predicted to reach the target without NN-Descent
  double predicted_recall = 0;  // by the rule
};

// Predicts the recall on a sample for every overlap up to a maximum and every given reach.
class OverlapChoice {
 public:
  OverlapChoice(const RecallSample& sample, std::size_t max_overlap,
                std::span<const std::optional<double>> reaches);

  // For sampled row `index` and one reach: the number of its partitions, and for each exact neighbour the
  // overlap from which both share a partition (0: already found).
  void set_partitions(std::size_t reach, std::size_t index, std::size_t count) {
    partitions_[reach][index] = count;
  }
  void set_overlap(std::size_t reach, std::size_t index, std::size_t neighbor, std::size_t overlap) {
    overlaps_[reach][index * sample_.degree() + neighbor] = static_cast<std::uint8_t>(overlap);
  }

  // The rule with the fewest partitions per row whose predicted recall has a lower bound of at least
  // `target`; the largest rule if none has.
  ChosenOverlap choose(double target) const;

 private:
  RecallEstimate predict(std::size_t reach, std::size_t overlap) const;
  std::size_t count_partitions(std::size_t reach, std::size_t overlap) const;

  const RecallSample& sample_;
  const std::size_t max_overlap_;
  const std::vector<std::optional<double>> reaches_;
  std::vector<std::vector<std::uint8_t>> overlaps_;   // [reaches][sample, degree]
  std::vector<std::vector<std::size_t>> partitions_;  // [reaches][sample]
};

}  // namespace nearwise::graph
