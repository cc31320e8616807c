// Orders partitions so that near ones are adjacent, and cuts the order into groups that share few rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/progress.h"
#include "nearwise/matrix.h"

namespace nearwise::plan {

struct PartitionGroups {
  std::vector<std::uint32_t> order;  // partitions, group by group
  std::vector<std::uint64_t> ends;   // of each group in `order`; groups may be empty
};

// Recursive bisection across the principal axis into parts of equal mass. mass [partitions]: proportional to
// the rows of each. These functions take seconds for millions of partitions and throw Error(cancelled).
PartitionGroups cut_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                               std::span<const double> mass, std::size_t groups);

// The same within every group down to single partitions, so that batches of a group share few rows, too.
void order_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                      std::span<const double> mass, PartitionGroups& groups);

}  // namespace nearwise::plan
