// Which of the overlapping k-means partitions a row belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "graph/partition/super_partitions.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"

namespace nearwise::graph {

inline constexpr std::uint32_t no_partition = 0xFFFFFFFF;

// A partition with more members is cut, because its pairs grow with the square of its size.
inline constexpr std::size_t max_partition_rows = 8192;

// Lloyd iterations: partitions need not be optimal, and recall is measured afterwards.
inline constexpr std::size_t training_iterations = 4;

// Squared distances order partitions as distances do, and need no square root.
inline Metric partition_metric(Metric metric) {
  return metric == Metric::euclidean ? Metric::sqeuclidean : metric;
}

// A row belongs to its nearest partition and to further near ones.
struct OverlapRule {
  std::size_t overlap = 1;  // partitions of a row, at most
  // Partitions farther than reach * (distance of the nearest) are left out: a row near its centroid has few
  // neighbours there. Distances are squared distances or 1 - cos; inner products have no such limit.
  std::optional<double> reach = {};

  // The number of partitions of a row with these ascending distances to its nearest partitions.
  std::size_t count(Metric metric, std::span<const float> distances) const;
};

// Searches the nearest partitions of rows: among all, or, with super-partitions, among those near the row's
// own, which misses few of them and costs about the square root.
class PartitionSearch {
 public:
  // Rows searched at a time.
  static constexpr std::size_t tile_rows = std::size_t{1} << 16;
  // Working memory of an exact search, in bytes, beyond which it gets no faster.
  static constexpr std::uint64_t working_bytes = std::uint64_t{8} << 20;

  // Centroids and super-partitions must outlive it.
  PartitionSearch(const Context& context, MatrixView<const float> centroids,
                  const SuperPartitionsView& super_partitions, Metric metric)
      : context_(context), centroids_(centroids), super_partitions_(super_partitions), metric_(metric) {}

  // Upper bound on the budget while the `count` nearest partitions of the rows are searched.
  static std::uint64_t bytes(const RowsView& rows, std::size_t partitions, bool has_super_partitions,
                             std::size_t count);

  // [rows, count] nearest first.
  Neighbors nearest(const RowsView& rows, std::size_t count) const;
  // partitions [rows, rule.overlap]: nearest first, no_partition behind the last.
  void find(const RowsView& rows, const OverlapRule& rule, std::span<std::uint32_t> partitions) const;

  Metric metric() const { return metric_; }

 private:
  // Receives the partitions of rows; the i-th is row numbers[i].
  using Take = std::function<void(std::span<const std::uint32_t> numbers, const Neighbors& partitions)>;
  void search(const RowsView& rows, std::size_t count, const Take& take) const;
  void search_all(const RowsView& rows, std::size_t count, const Take& take) const;
  void search_super_partition(const RowsView& rows, std::size_t super_partition,
                              std::span<const std::uint32_t> numbers, std::size_t count,
                              const Take& take) const;

  const Context context_;
  const MatrixView<const float> centroids_;
  const SuperPartitionsView super_partitions_;
  const Metric metric_;
};

}  // namespace nearwise::graph
