// The recall of a graph, measured on a sample of its rows against exact search.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "graph/build/row_sample.h"
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

  // What a search found. Kept, it makes the sample again, of the same rows, degree, metric, count and seed.
  struct Exact {
    std::vector<Id> nearest;  // [sample, degree]
    std::vector<float>
        limits;  // [sample] the key (core/distance.h) of the last: those with larger ones do not count
  };
  RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
               std::size_t count, Exact exact);

  static std::uint64_t bytes(const RowsView& rows, std::size_t degree, std::size_t count);

  const Exact& exact() const { return exact_; }
  std::size_t size() const { return exact_.limits.size(); }
  // Of other rows that there are, at most as asked for.
  std::size_t degree() const { return degree_; }
  std::uint32_t row(std::size_t index) const { return sample_.number(index); }
  std::span<const Id> nearest(std::size_t index) const {
    return std::span(exact_.nearest).subspan(index * degree_, degree_);
  }

  // neighbors(row): the ids that a graph has for it, below the number of rows or no_id. Which of them count is decided by
  // distances computed here, by their definition: a backend that is wrong about distances does not judge itself.
  RecallEstimate estimate(const std::function<std::vector<Id>(std::uint32_t row)>& neighbors) const;
  // The same of lists that are yet to be made, of rows that meet: met(row, other).
  RecallEstimate predict(const std::function<bool(std::uint32_t row, std::uint32_t other)>& joined) const;
  // Of how many neighbours of each row of the sample there are.
  RecallEstimate estimate_of(std::span<const std::size_t> counts) const;

 private:
  RecallEstimate estimate_by_index(const std::function<std::vector<Id>(std::size_t index)>& neighbors) const;
  std::size_t found(std::size_t index, std::vector<Id> ids) const;

  const Context context_;
  const RowsView rows_;
  const Metric metric_;
  const std::size_t degree_;
  RowSample sample_;
  Exact exact_;
};

// Wilson's interval for the mean of numbers in [0, 1], as many trials as their spread is worth.
RecallEstimate interval_of(double mean, double variance, std::size_t count);

}  // namespace nearwise::graph
