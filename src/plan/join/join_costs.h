// Estimated costs of the tasks of a join, from a short measurement on this machine and a sample.
#pragma once

#include <cstddef>

#include "plan/join/join_work.h"

namespace nearwise::plan {

// Seconds to compare a pair, to copy a vector and to move a pair, and how many pairs there are within the
// threshold: at least one for each row.
struct JoinCosts {
  double pair = 0;
  double gathered = 0;
  double merged = 0;
  double found = 0;
};

JoinCosts measure_join(const Context& context, const JoinWork& work, const RowsView& rows);

// Bytes and seconds of each kind of task; the caller sets names, dependencies and memory.
PlannedTask cost_of_join(const JoinWork& work, const JoinCosts& costs, const RowsView& rows, std::size_t left,
                         std::size_t right);
PlannedTask cost_of_train(const JoinWork& work, const JoinCosts& costs, const RowsView& rows);
PlannedTask cost_of_assign(const JoinWork& work, const JoinCosts& costs, const RowsView& rows,
                           std::size_t block);
PlannedTask cost_of_compare(const JoinWork& work, const JoinCosts& costs, const RowsView& rows);
PlannedTask cost_of_sides(const JoinWork& work, const JoinCosts& costs, std::size_t block);
PlannedTask cost_of_publish(const JoinWork& work, const JoinCosts& costs);

}  // namespace nearwise::plan
