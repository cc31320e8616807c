#include "plan/partition/cell_search.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t tile_rows = GraphShape::tile_rows;
// Rows of a region at a time, and rows that a thread gathers.
constexpr std::size_t piece_rows = 4096;
constexpr std::size_t task_rows = 256;
constexpr std::uint64_t answer_bytes = sizeof(Id) + sizeof(float);

void gather(const Context& context, const RowsView& rows, std::span<const std::uint32_t> numbers,
            std::byte* out) {
  const std::size_t row_bytes = rows.dim() * element_size(rows.type());
  context.state().threads->for_each(divide_up(numbers.size(), task_rows), [&](std::size_t task) {
    for (std::size_t i = task * task_rows; i < std::min(numbers.size(), (task + 1) * task_rows); ++i)
      std::memcpy(out + i * row_bytes, rows.row(numbers[i]), row_bytes);
  });
}

// The numbers of rows, those of one region together.
struct RowsByRegion {
  Buffer<std::uint32_t> numbers;
  std::vector<std::size_t> ends;  // [regions]

  RowsByRegion(const Context& context, std::span<const std::uint32_t> region_of, std::size_t regions)
      : numbers(*context.state().budget, region_of.size()), ends(regions, 0) {
    for (const std::uint32_t region : region_of) ++ends[region];
    std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), std::size_t{0});
    for (std::uint32_t row = 0; row < region_of.size(); ++row) numbers[ends[region_of[row]]++] = row;
  }
};

}  // namespace

std::size_t CellRule::count(Metric metric, std::span<const float> distances) const {
  const std::size_t most = std::min(overlap, distances.size());
  if (metric == Metric::inner_product) return most;
  const double limit = reach * static_cast<double>(distances[0]);
  std::size_t count = 1;
  while (count < most && static_cast<double>(distances[count]) <= limit) ++count;
  return count;
}

CellSearch::CellSearch(const Context& context, MatrixView<const float> centroids, const RegionsView& regions,
                       Metric metric)
    : context_(context.without_progress()), centroids_(centroids), regions_(regions), metric_(metric) {}

std::uint64_t CellSearch::bytes(const RowsView& rows, std::size_t cells, bool has_regions,
                                std::size_t count) {
  const std::size_t packed_row = rows.dim() * sizeof(float) + 1024;
  const std::size_t tile = std::min(tile_rows, rows.rows());
  const auto tiles = [&](std::size_t among, std::size_t answers) {
    return (among + tile) * packed_row + tile * (answers * answer_bytes + sizeof(std::uint32_t));
  };
  if (!has_regions) return tiles(cells, count) + search_bytes;
  const std::size_t piece = std::min(piece_rows, rows.rows());
  const std::uint64_t pieces =
      2 * Regions::most_near(cells) * packed_row +
      piece * (rows.dim() * element_size(rows.type()) + packed_row + count * answer_bytes);
  return rows.rows() * 2 * sizeof(std::uint32_t) + std::max(tiles(Regions::most_regions(cells), 1), pieces) +
         search_bytes;
}

void CellSearch::search(const RowsView& rows, std::size_t count, const Take& take) const {
  const bool has_regions = regions_.size() != 0;
  MemoryBudget& budget = *context_.state().budget;
  Buffer<std::uint32_t> region_of(budget, has_regions ? rows.rows() : 0);
  Buffer<std::uint32_t> numbers(budget, std::min(rows.rows(), tile_rows));
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView tile = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    const Neighbors nearest = has_regions ? assign(context_, tile, regions_.centres, {.metric = metric_})
                                          : knn(context_, tile, centroids_, count, {.metric = metric_});
    if (has_regions) {
      std::transform(nearest.ids.data(), nearest.ids.data() + tile.rows(), region_of.data() + first,
                     [](Id region) { return static_cast<std::uint32_t>(region); });
    } else {
      const auto of_tile = numbers.span().first(tile.rows());
      std::iota(of_tile.begin(), of_tile.end(), static_cast<std::uint32_t>(first));
      take(of_tile, nearest);
    }
  }
  if (!has_regions) return;
  const RowsByRegion by_region(context_, region_of.span(), regions_.size());
  std::size_t first = 0;
  for (std::size_t region = 0; region < by_region.ends.size(); ++region) {
    search_region(rows, region, by_region.numbers.span().subspan(first, by_region.ends[region] - first),
                  count, take);
    first = by_region.ends[region];
  }
}

void CellSearch::search_region(const RowsView& rows, std::size_t region,
                               std::span<const std::uint32_t> numbers, std::size_t count,
                               const Take& take) const {
  if (numbers.empty()) return;
  MemoryBudget& budget = *context_.state().budget;
  const auto near = regions_.cells_of(region);
  Matrix<float> base(near.size(), centroids_.cols());
  const Reservation of_base(budget, near.size() * centroids_.cols() * sizeof(float));
  gather(context_, centroids_, near, reinterpret_cast<std::byte*>(base.data()));
  const std::size_t row_bytes = rows.dim() * element_size(rows.type());
  Buffer<std::byte> gathered(budget, std::min(piece_rows, numbers.size()) * row_bytes);
  for (std::size_t first = 0; first < numbers.size(); first += piece_rows) {
    const auto piece = numbers.subspan(first, std::min(piece_rows, numbers.size() - first));
    gather(context_, rows, piece, gathered.data());
    Neighbors found = knn(context_, {gathered.data(), rows.type(), piece.size(), rows.dim(), row_bytes}, base,
                          count, {.metric = metric_, .short_rows = ShortRows::pad});
    for (Id& id : std::span(found.ids.data(), piece.size() * count))
      if (id != no_id) id = Id{near[static_cast<std::size_t>(id)]};
    take(piece, found);
  }
}

Neighbors CellSearch::nearest(const RowsView& rows, std::size_t count) const {
  Neighbors all{Matrix<Id>(rows.rows(), count), Matrix<float>(rows.rows(), count)};
  search(rows, count, [&](std::span<const std::uint32_t> numbers, const Neighbors& cells) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::ranges::copy(cells.ids.row(i), all.ids.row(numbers[i]).begin());
      std::ranges::copy(cells.distances.row(i), all.distances.row(numbers[i]).begin());
    }
  });
  return all;
}

void CellSearch::find(const RowsView& rows, const CellRule& rule, std::span<std::uint32_t> cells) const {
  const std::size_t overlap = rule.overlap;
  search(rows, overlap, [&](std::span<const std::uint32_t> numbers, const Neighbors& nearest) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::size_t near = rule.count(metric_, nearest.distances.row(i));
      for (std::size_t j = 0; j < overlap; ++j)
        cells[numbers[i] * overlap + j] =
            j < near && nearest.ids(i, j) != no_id ? static_cast<std::uint32_t>(nearest.ids(i, j)) : no_row;
    }
  });
}

}  // namespace nearwise::plan
