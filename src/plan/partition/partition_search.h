// The partitions that rows are in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "plan/partition/super_partitions.h"

namespace nearwise::plan {

// Which of its nearest partitions a row is in.
struct OverlapRule {
  std::size_t overlap = 1;  // at the most
  // Partitions that are so many times as far as the nearest (squared distances, or 1 - cos) hold few of its neighbours: a row in the
  // middle of its partition is in that alone. Products have no such limit.
  double reach = 1;
  static constexpr std::size_t reaches = 18;  // that are tried

  // Of nearest partitions at these distances: the first so many.
  std::size_t count(Metric metric, std::span<const float> distances) const;
};

// The nearest partitions of rows: among all, or among those near the row's super-partition. The latter are nearly always the same, and cost
// as much as the square root of the number of partitions.
class PartitionSearch {
 public:
  // Centroids and super-partitions must outlive it.
  PartitionSearch(const Context& context, MatrixView<const float> centroids,
                  const SuperPartitionsView& super_partitions, Metric metric);

  // Bytes on the budget while the partitions of so many rows are searched.
  static std::uint64_t bytes(const RowsView& rows, std::size_t partitions, bool has_super_partitions,
                             std::size_t count);

  // [rows, count] nearest first.
  Neighbors nearest(const RowsView& rows, std::size_t count) const;
  // partitions [rows, rule.overlap]: nearest first, no_row where a row is in no more.
  void find(const RowsView& rows, const OverlapRule& rule, std::span<std::uint32_t> partitions) const;

  Metric metric() const { return metric_; }

 private:
  // Takes the partitions of some rows, the i-th of which has this number.
  using Take = std::function<void(std::span<const std::uint32_t> numbers, const Neighbors& partitions)>;
  void search(const RowsView& rows, std::size_t count, const Take& take) const;
  void search_super_partition(const RowsView& rows, std::size_t super_partition,
                              std::span<const std::uint32_t> numbers, std::size_t count,
                              const Take& take) const;

  const Context context_;
  const MatrixView<const float> centroids_;
  const SuperPartitionsView super_partitions_;
  const Metric metric_;
};

}  // namespace nearwise::plan
