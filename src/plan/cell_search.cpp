#include "plan/cell_search.h"

#include <algorithm>

#include "nearwise/exact.h"

namespace nearwise::plan {
namespace {

// Of the nearest cells, so many are found by an inverted file.
constexpr double share_of_cells = 0.9;

}  // namespace

std::size_t CellRule::count(Metric metric, std::span<const float> distances) const {
  const std::size_t most = std::min(overlap, distances.size());
  if (metric == Metric::inner_product) return most;
  const double limit = reach * static_cast<double>(distances[0]);
  std::size_t count = 1;
  while (count < most && static_cast<double>(distances[count]) <= limit) ++count;
  return count;
}

CellSearch::CellSearch(const Context& context, const GraphWork& work, MatrixView<const float> centroids)
    : context_(context), centroids_(centroids), metric_(metric_of_cells(work.options.metric)) {
  if (centroids.rows() > work.shape.searched_cells)
    index_.emplace(IvfFlat::build(context, centroids, {.metric = metric_}, {.recall = share_of_cells}));
}

Neighbors CellSearch::nearest(const RowsView& rows, std::size_t count) const {
  return index_ ? index_->search(context_, rows, count)
                : knn(context_, rows, centroids_, count, {.metric = metric_});
}

void CellSearch::find(const RowsView& rows, const CellRule& rule, std::span<std::uint32_t> cells) const {
  const std::size_t overlap = rule.overlap;
  for (std::size_t first = 0; first < rows.rows(); first += GraphShape::tile_rows) {
    const std::size_t count = std::min(GraphShape::tile_rows, rows.rows() - first);
    const Neighbors nearest = this->nearest(rows.slice(first, count), overlap);
    for (std::size_t row = 0; row < count; ++row) {
      const std::size_t near = rule.count(metric_, nearest.distances.row(row));
      for (std::size_t i = 0; i < overlap; ++i) {
        const Id cell = nearest.ids(row, i);
        cells[(first + row) * overlap + i] =
            i < near && cell != no_id ? static_cast<std::uint32_t>(cell) : no_row;
      }
    }
  }
}

}  // namespace nearwise::plan
