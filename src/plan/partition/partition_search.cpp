#include "plan/partition/partition_search.h"

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
// Rows of a super-partition at a time, and rows that a thread gathers.
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

// The numbers of rows, those of one super-partition together.
struct RowsBySuperPartition {
  Buffer<std::uint32_t> numbers;
  std::vector<std::size_t> ends;  // [super-partitions]

  RowsBySuperPartition(const Context& context, std::span<const std::uint32_t> super_partition_of,
                       std::size_t super_partitions)
      : numbers(*context.state().budget, super_partition_of.size()), ends(super_partitions, 0) {
    for (const std::uint32_t super_partition : super_partition_of) ++ends[super_partition];
    std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), std::size_t{0});
    for (std::uint32_t row = 0; row < super_partition_of.size(); ++row)
      numbers[ends[super_partition_of[row]]++] = row;
  }
};

}  // namespace

std::size_t OverlapRule::count(Metric metric, std::span<const float> distances) const {
  const std::size_t most = std::min(overlap, distances.size());
  if (metric == Metric::inner_product) return most;
  const double limit = reach * static_cast<double>(distances[0]);
  std::size_t count = 1;
  while (count < most && static_cast<double>(distances[count]) <= limit) ++count;
  return count;
}

PartitionSearch::PartitionSearch(const Context& context, MatrixView<const float> centroids,
                                 const SuperPartitionsView& super_partitions, Metric metric)
    : context_(context.without_progress()),
      centroids_(centroids),
      super_partitions_(super_partitions),
      metric_(metric) {}

std::uint64_t PartitionSearch::bytes(const RowsView& rows, std::size_t partitions, bool has_super_partitions,
                                     std::size_t count) {
  const std::size_t packed_row = rows.dim() * sizeof(float) + 1024;
  const std::size_t tile = std::min(tile_rows, rows.rows());
  const auto tiles = [&](std::size_t among, std::size_t answers) {
    return (among + tile) * packed_row + tile * (answers * answer_bytes + sizeof(std::uint32_t));
  };
  if (!has_super_partitions) return tiles(partitions, count) + search_bytes;
  const std::size_t piece = std::min(piece_rows, rows.rows());
  const std::uint64_t pieces =
      2 * SuperPartitions::max_near(partitions) * packed_row +
      piece * (rows.dim() * element_size(rows.type()) + packed_row + count * answer_bytes);
  return rows.rows() * 2 * sizeof(std::uint32_t) +
         std::max(tiles(SuperPartitions::max_super_partitions(partitions), 1), pieces) + search_bytes;
}

void PartitionSearch::search(const RowsView& rows, std::size_t count, const Take& take) const {
  const bool has_super_partitions = super_partitions_.size() != 0;
  MemoryBudget& budget = *context_.state().budget;
  Buffer<std::uint32_t> super_partition_of(budget, has_super_partitions ? rows.rows() : 0);
  Buffer<std::uint32_t> numbers(budget, std::min(rows.rows(), tile_rows));
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const RowsView tile = rows.slice(first, std::min(tile_rows, rows.rows() - first));
    const Neighbors nearest = has_super_partitions
                                  ? assign(context_, tile, super_partitions_.centres, {.metric = metric_})
                                  : knn(context_, tile, centroids_, count, {.metric = metric_});
    if (has_super_partitions) {
      std::transform(nearest.ids.data(), nearest.ids.data() + tile.rows(), super_partition_of.data() + first,
                     [](Id super_partition) { return static_cast<std::uint32_t>(super_partition); });
    } else {
      const auto of_tile = numbers.span().first(tile.rows());
      std::iota(of_tile.begin(), of_tile.end(), static_cast<std::uint32_t>(first));
      take(of_tile, nearest);
    }
  }
  if (!has_super_partitions) return;
  const RowsBySuperPartition by_super_partition(context_, super_partition_of.span(),
                                                super_partitions_.size());
  std::size_t first = 0;
  for (std::size_t super_partition = 0; super_partition < by_super_partition.ends.size(); ++super_partition) {
    search_super_partition(
        rows, super_partition,
        by_super_partition.numbers.span().subspan(first, by_super_partition.ends[super_partition] - first),
        count, take);
    first = by_super_partition.ends[super_partition];
  }
}

void PartitionSearch::search_super_partition(const RowsView& rows, std::size_t super_partition,
                                             std::span<const std::uint32_t> numbers, std::size_t count,
                                             const Take& take) const {
  if (numbers.empty()) return;
  MemoryBudget& budget = *context_.state().budget;
  const auto near = super_partitions_.partitions_of(super_partition);
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
        partitions[numbers[i] * overlap + j] =
            j < near && nearest.ids(i, j) != no_id ? static_cast<std::uint32_t>(nearest.ids(i, j)) : no_row;
    }
  });
}

}  // namespace nearwise::plan
