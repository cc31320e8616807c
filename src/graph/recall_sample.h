// Sampled rows with their exact neighbours, against which the recall of a graph is measured.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "graph/row_sample.h"
#include "nearwise/recall_estimate.h"
#include "nearwise/types.h"

namespace nearwise::graph {

class RecallSample {
 public:
  // Searches exactly for the neighbours of `count` rows drawn from the first `population` rows, or of all of
  // these.
  RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
               std::size_t count, std::size_t population);
  RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
               std::size_t count)
      : RecallSample(context, rows, degree, metric, count, rows.rows()) {}

  // The outcome of the exact search. With equal rows, degree, metric, count and seed it restores the sample.
  struct Exact {
    std::vector<Id> nearest;  // [sample, degree]
    std::vector<float>
        limits;  // [sample] sort key of the last exact neighbour: a neighbour beyond it does not count
  };
  RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
               std::size_t count, Exact exact);

  // The row number of sample `index` of `count`, known before a sample is made.
  static std::size_t row(std::uint64_t seed, std::size_t rows, std::size_t count, std::size_t index);

  // Upper bound on the budget.
  static std::uint64_t bytes(const RowsView& rows, std::size_t degree, std::size_t count);

  const Exact& exact() const { return exact_; }
  std::size_t size() const { return exact_.limits.size(); }
  // At most the number of other rows.
  std::size_t degree() const { return degree_; }
  std::uint32_t row(std::size_t index) const { return sample_.number(index); }
  std::span<const Id> nearest(std::size_t index) const {
    return std::span(exact_.nearest).subspan(index * degree_, degree_);
  }

  // neighbors(row): the ids that a graph has for the row, no_id for none; called on several threads at once.
  // Their distances are computed here by definition, so that a backend with wrong distances cannot hide it.
  RecallEstimate estimate(const std::function<std::vector<Id>(std::uint32_t row)>& neighbors) const;
  // found: the number of exact neighbours present, per sampled row.
  RecallEstimate estimate(std::span<const std::size_t> found) const;

 private:
  std::size_t count_found(std::size_t index, std::vector<Id> ids) const;

  const Context context_;
  const RowsView rows_;
  const Metric metric_;
  const std::size_t degree_;
  RowSample sample_;
  Exact exact_;
};

}  // namespace nearwise::graph
