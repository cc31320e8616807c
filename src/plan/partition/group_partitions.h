// Groups partitions so that each group fits in memory, by a representative sample of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/partition/order_partitions.h"

namespace nearwise::plan {

// The partitions of sampled rows: [rows, overlap], padded with no_partition.
struct SampledRows {
  std::span<const std::uint32_t> partitions;
  std::size_t overlap = 1;

  std::size_t size() const { return partitions.size() / overlap; }
  std::span<const std::uint32_t> of(std::size_t row) const;
};

// The fewest groups in which each has at most max_share of the rows (a row counts once per group), but at
// most max_groups, which may then be larger. Partitions that share rows are grouped together where possible.
// The result has max_groups ends; surplus groups are empty.
PartitionGroups group_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                                 const SampledRows& rows, double max_share, std::size_t max_groups);

}  // namespace nearwise::plan
