// Partitions in groups as large as memory allows, by rows that stand for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/partition/order_partitions.h"

namespace nearwise::plan {

// Some rows, each in up to `overlap` partitions: [rows, overlap], no_row where there are no more.
struct SampledRows {
  std::span<const std::uint32_t> partitions;
  std::size_t overlap = 1;

  std::size_t size() const { return partitions.size() / overlap; }
  std::span<const std::uint32_t> of(std::size_t row) const;
};

// As few groups as have no more than a share of the rows each, a row counting once in a group, whatever its partitions there; no
// more than `max_groups`, which may have larger ones. Partitions that have rows in common are together where there is room. Ends of
// `max_groups` groups: those behind are empty.
PartitionGroups group_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                                 const SampledRows& rows, double max_share, std::size_t max_groups);

}  // namespace nearwise::plan
