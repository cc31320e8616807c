// Which of its nearest partitions a row is in: as few as will do. Pairs grow with the square of them, and whether neighbours will
// meet is known before they do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/partition/partition_search.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// The least number of their nearest partitions with which two rows share one, given the partitions of each, nearest first; no_meeting: with
// none.
std::size_t shared_overlap(std::span<const Id> partitions, std::span<const Id> others);
inline constexpr std::size_t no_shared_partition = ~std::size_t{0};

struct ChosenRule {
  OverlapRule rule;
  bool is_enough = false;  // for the recall, as predicted: nothing but the partitions is needed
  double predicted = 0;    // recall
};

// Of what may be missing, so much is for partitions that are cut, and those that super-partitions do not find: it is not used up.
inline constexpr double share_for_cuts = 0.05;

// The rule with the fewest partitions per row that gets the sample to the recall, with what earlier passes have found; the one with
// most where none does.
ChosenRule choose_rule(const Context& context, const GraphWork& work, std::size_t pass,
                       const PartitionSearch& search);

}  // namespace nearwise::plan
