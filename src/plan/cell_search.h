// The cells that rows are in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nearwise/ivf.h"
#include "plan/graph_work.h"

namespace nearwise::plan {

// Which of its nearest cells a row is in.
struct CellRule {
  std::size_t overlap = 1;  // at the most
  // Cells that are so many times as far as the nearest (squared distances, or 1 - cos) hold few of its neighbours: a row in the
  // middle of its cell is in that alone. Products have no such limit.
  double reach = 1;

  // Of nearest cells at these distances: the first so many.
  std::size_t count(Metric metric, std::span<const float> distances) const;
};

// Of few centroids the nearest, and of many those that an inverted file of them finds, so that a row costs as much as the
// square root of their number.
class CellSearch {
 public:
  // The centroids must outlive it.
  CellSearch(const Context& context, const GraphWork& work, MatrixView<const float> centroids);

  // [rows, count] nearest first; no_id where it finds no more.
  Neighbors nearest(const RowsView& rows, std::size_t count) const;
  // cells [rows, rule.overlap]: nearest first, no_row where a row is in no more.
  void find(const RowsView& rows, const CellRule& rule, std::span<std::uint32_t> cells) const;

  Metric metric() const { return metric_; }

 private:
  const Context& context_;
  const MatrixView<const float> centroids_;
  const Metric metric_;
  std::optional<IvfFlat> index_;
};

}  // namespace nearwise::plan
