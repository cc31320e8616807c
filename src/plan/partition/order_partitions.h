// Partitions in an order in which near ones are together, cut in groups that share few rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/progress.h"
#include "nearwise/matrix.h"

namespace nearwise::plan {

struct PartitionGroups {
  std::vector<std::uint32_t> order;  // partitions, group by group
  std::vector<std::uint64_t> ends;   // of groups, in the order; some may be empty
};

// Cut in two across the longest axis, by mass, again and again until there are so many groups. mass [partitions]: the rows that
// each will have, or in proportion. Throws Error(cancelled), as all of these do: they take seconds for millions of partitions.
PartitionGroups cut_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                               std::span<const double> mass, std::size_t groups);

// The same inside every group down to single partitions, so that parts of a group share few rows too.
void order_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                      std::span<const double> mass, PartitionGroups& groups);

}  // namespace nearwise::plan
