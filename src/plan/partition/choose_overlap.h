// The overlap rule of a pass, by the exact neighbours of the recall sample.
#pragma once

#include <cstddef>

#include "graph/partition/overlap_choice.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// Share of the recall slack (1 - target) reserved for neighbours lost to cut partitions and to
// super-partitions.
inline constexpr double cut_slack = 0.05;

// The number of reaches tried, and the largest.
inline constexpr std::size_t reach_count = 18;
inline constexpr double max_reach = 3.0;

// Counts neighbours that earlier passes have found.
graph::ChosenOverlap choose_overlap(const Context& context, const GraphWork& work, std::size_t pass,
                                    const graph::PartitionSearch& search);

}  // namespace nearwise::plan
