#include "graph/partition/partition_search.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "core/cluster_members.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"
#include "ops/gather_rows.h"

namespace nearwise::graph {
namespace {

// Rows of a super-partition searched at a time: a query tile of exact search.
constexpr std::size_t piece_rows = 4096;
constexpr std::uint64_t answer_bytes = sizeof(Id) + sizeof(float);

}  // namespace

std::size_t OverlapRule::count(Metric metric, std::span<const float> distances) const {
  const std::size_t most = std::min(overlap, distances.size());
  if (metric == Metric::inner_product || !reach) return most;
  const double limit = *reach * static_cast<double>(distances[0]);
  std::size_t count = 1;
  while (count < most && static_cast<double>(distances[count]) <= limit) ++count;
  return count;
}

std::uint64_t PartitionSearch::bytes(const RowsView& rows, std::size_t partitions, bool has_super_partitions,
                                     std::size_t count) {
  const std::size_t packed_row = rows.dim() * sizeof(float) + 1024;
  const std::size_t tile = std::min(tile_rows, rows.rows());
  const auto tiles = [&](std::size_t base_rows, std::size_t answers) {
    return (base_rows + tile) * packed_row + tile * (answers * answer_bytes + sizeof(std::uint32_t));
  };
  if (!has_super_partitions) return tiles(partitions, count) + working_bytes;
  const std::size_t piece = std::min(piece_rows, rows.rows());
  const std::uint64_t pieces = 2 * SuperPartitions::max_near(partitions) * packed_row +
                               piece * (row_bytes_of(rows) + packed_row + count * answer_bytes);
  return rows.rows() * 2 * sizeof(std::uint32_t) +
         std::max(tiles(SuperPartitions::max_count(partitions), 1), pieces) + working_bytes;
}

void PartitionSearch::search_all(const RowsView& rows, std::size_t count, const Take& take) const {
  Buffer<std::uint32_t> numbers(*context_.state().budget, std::min(rows.rows(), tile_rows));
  Stages stages(context_, "find_partitions");
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView tile = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    const Context context =
        stages.next(static_cast<double>(tile.rows()), static_cast<double>(rows.rows() - first - tile.rows()));
    const auto of_tile = numbers.span().first(tile.rows());
    std::iota(of_tile.begin(), of_tile.end(), static_cast<std::uint32_t>(first));
    take(of_tile, knn(context, tile, centroids_, count, {.metric = metric_}));
  }
  stages.finish();
}

void PartitionSearch::search(const RowsView& rows, std::size_t count, const Take& take) const {
  if (super_partitions_.size() == 0) return search_all(rows, count, take);
  MemoryBudget& budget = *context_.state().budget;
  Stages stages(context_, "find_partitions");
  // Either step compares a row with about as many centroids.
  Stages assigning(stages.next(1, 1), "find_partitions");
  Buffer<std::uint32_t> super_partition_of(budget, rows.rows());
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView tile = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    const Neighbors nearest = assign(assigning.next(static_cast<double>(tile.rows()),
                                                    static_cast<double>(rows.rows() - first - tile.rows())),
                                     tile, super_partitions_.centroids, {.metric = metric_});
    std::transform(nearest.ids.data(), nearest.ids.data() + tile.rows(), super_partition_of.data() + first,
                   [](Id id) { return static_cast<std::uint32_t>(id); });
  }
  Buffer<std::uint32_t> numbers(budget, rows.rows());
  std::vector<std::uint64_t> ends(super_partitions_.size());
  sort_by_cluster(super_partition_of.span(), numbers.span(), ends);
  const Context searching = stages.next(1, 0);
  ProgressMeter progress(searching.state().options.progress, searching.state().clock, "find_partitions",
                         rows.rows());
  std::size_t first = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    search_super_partition(rows, i, numbers.span().subspan(first, ends[i] - first), count, take);
    progress.add(ends[i] - first);
    first = ends[i];
  }
  stages.finish();
}

void PartitionSearch::search_super_partition(const RowsView& rows, std::size_t super_partition,
                                             std::span<const std::uint32_t> numbers, std::size_t count,
                                             const Take& take) const {
  if (numbers.empty()) return;
  const auto near = super_partitions_.partitions_of(super_partition);
  const Context silent = context_.without_progress();
  const GatheredRows base(context_, centroids_, near);
  for (std::size_t first = 0; first < numbers.size(); first += piece_rows) {
    const auto piece = numbers.subspan(first, std::min(piece_rows, numbers.size() - first));
    const GatheredRows queries(context_, rows, piece);
    Neighbors found =
        knn(silent, queries.view(), base.view(), count, {.metric = metric_, .short_rows = ShortRows::pad});
    for (Id& id : std::span(found.ids.data(), piece.size() * count))
      if (id != no_id) id = Id{near[static_cast<std::size_t>(id)]};
    take(piece, found);
  }
}

Neighbors PartitionSearch::nearest(const RowsView& rows, std::size_t count) const {
  Neighbors all{Matrix<Id>(rows.rows(), count), Matrix<float>(rows.rows(), count)};
  search(rows, count, [&](std::span<const std::uint32_t> numbers, const Neighbors& partitions) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::ranges::copy(partitions.ids.row(i), all.ids.row(numbers[i]).begin());
      std::ranges::copy(partitions.distances.row(i), all.distances.row(numbers[i]).begin());
    }
  });
  return all;
}

void PartitionSearch::find(const RowsView& rows, const OverlapRule& rule,
                           std::span<std::uint32_t> partitions) const {
  const std::size_t overlap = rule.overlap;
  search(rows, overlap, [&](std::span<const std::uint32_t> numbers, const Neighbors& nearest) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::size_t near = rule.count(metric_, nearest.distances.row(i));
      for (std::size_t j = 0; j < overlap; ++j)
        partitions[numbers[i] * overlap + j] = j < near && nearest.ids(i, j) != no_id
                                                   ? static_cast<std::uint32_t>(nearest.ids(i, j))
                                                   : no_partition;
    }
  });
}

}  // namespace nearwise::graph
