// The recall of a graph, measured on a sample of its rows against exact search.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/row_sample.h"
#include "nearwise/knn_graph.h"

namespace nearwise::graph {

class RecallSample {
 public:
  // Searches exactly for the neighbours of `count` rows.
  RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
               std::size_t count);

  static std::uint64_t bytes(const RowsView& rows, std::size_t degree, std::size_t count);

  std::size_t size() const { return limits_.size(); }
  std::uint32_t row(std::size_t index) const { return sample_.number(index); }
  // The key (core/distance.h) of the last exact neighbour: those with larger ones do not count.
  float limit(std::size_t index) const { return limits_[index]; }

  // found [size]: how many neighbours of each row of the sample count.
  RecallEstimate estimate(std::span<const std::size_t> found) const;

 private:
  const std::size_t all_rows_;
  const std::size_t degree_;  // that there are other rows for
  RowSample sample_;
  std::vector<float> limits_;
};

// Wilson's interval for the mean of numbers in [0, 1], as many trials as their spread is worth.
RecallEstimate interval_of(double mean, double variance, std::size_t count);

}  // namespace nearwise::graph
