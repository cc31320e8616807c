// Which of its nearest cells a row is in: as few as will do. Pairs grow with the square of them, and whether neighbours will
// meet is known before they do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/partition/cell_search.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// The least number of their nearest cells with which two rows share one, given the cells of each, nearest first; no_meeting: with
// none.
std::size_t meeting_overlap(std::span<const Id> cells, std::span<const Id> others);
inline constexpr std::size_t no_meeting = ~std::size_t{0};

struct ChosenRule {
  CellRule rule;
  bool is_enough = false;  // for the recall, as foreseen: nothing but the cells is needed
  double foreseen = 0;     // recall
};

// Of what may be missing, so much is for cells that are cut, and those that regions do not find: it is not used up.
inline constexpr double share_for_cuts = 0.05;

// The rule with the fewest cells per row that gets the sample to the recall, with what earlier passes have found; the one with
// most where none does.
ChosenRule choose_rule(const Context& context, const GraphWork& work, std::size_t pass,
                       const CellSearch& search);

}  // namespace nearwise::plan
