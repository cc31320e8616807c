// The cells that rows are in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "plan/partition/cell_regions.h"

namespace nearwise::plan {

// Which of its nearest cells a row is in.
struct CellRule {
  std::size_t overlap = 1;  // at the most
  // Cells that are so many times as far as the nearest (squared distances, or 1 - cos) hold few of its neighbours: a row in the
  // middle of its cell is in that alone. Products have no such limit.
  double reach = 1;
  static constexpr std::size_t reaches = 18;  // that are tried

  // Of nearest cells at these distances: the first so many.
  std::size_t count(Metric metric, std::span<const float> distances) const;
};

// The nearest cells of rows: among all, or among those near the row's region. The latter are nearly always the same, and cost
// as much as the square root of the number of cells.
class CellSearch {
 public:
  // Centroids and regions must outlive it.
  CellSearch(const Context& context, MatrixView<const float> centroids, const RegionsView& regions,
             Metric metric);

  // Bytes on the budget while the cells of so many rows are searched.
  static std::uint64_t bytes(const RowsView& rows, std::size_t cells, bool has_regions, std::size_t count);

  // [rows, count] nearest first.
  Neighbors nearest(const RowsView& rows, std::size_t count) const;
  // cells [rows, rule.overlap]: nearest first, no_row where a row is in no more.
  void find(const RowsView& rows, const CellRule& rule, std::span<std::uint32_t> cells) const;

  Metric metric() const { return metric_; }

 private:
  // Takes the cells of some rows, the i-th of which has this number.
  using Take = std::function<void(std::span<const std::uint32_t> numbers, const Neighbors& cells)>;
  void search(const RowsView& rows, std::size_t count, const Take& take) const;
  void search_region(const RowsView& rows, std::size_t region, std::span<const std::uint32_t> numbers,
                     std::size_t count, const Take& take) const;

  const Context context_;
  const MatrixView<const float> centroids_;
  const RegionsView regions_;
  const Metric metric_;
};

}  // namespace nearwise::plan
