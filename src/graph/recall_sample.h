// The recall of a graph, measured on a sample of its rows against exact search.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "graph/row_sample.h"
#include "nearwise/knn_graph.h"

namespace nearwise::graph {

class RecallSample {
 public:
  // Searches exactly for the neighbours of `count` rows, or of all `among` which they are drawn: the first so many.
  RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
               std::size_t count, std::size_t among);
  RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
               std::size_t count)
      : RecallSample(context, rows, degree, metric, count, rows.rows()) {}

  static std::uint64_t bytes(const RowsView& rows, std::size_t degree, std::size_t count);

  // neighbors(row): the ids that a graph has for it, below the number of rows or no_id. Which of them count is decided by
  // distances computed here, by their definition: a backend that is wrong about distances does not judge itself.
  RecallEstimate estimate(const std::function<std::vector<Id>(std::uint32_t row)>& neighbors) const;

 private:
  std::size_t found(std::size_t index, std::vector<Id> ids) const;

  const Context context_;
  const RowsView rows_;
  const Metric metric_;
  const std::size_t degree_;  // that there are other rows for
  RowSample sample_;
  std::vector<float>
      limits_;  // the key (core/distance.h) of the last exact neighbour: those with larger ones do not count
};

// Wilson's interval for the mean of numbers in [0, 1], as many trials as their spread is worth.
RecallEstimate interval_of(double mean, double variance, std::size_t count);

}  // namespace nearwise::graph
