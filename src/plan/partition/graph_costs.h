// Estimated costs of the tasks of a graph, from a short measurement on this machine.
#pragma once

#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// Seconds. `pair` is measured; the others, and the ratios in the .cpp, are unverified estimates.
struct GraphCosts {
  double pair = 0;      // one distance of exact search
  double gathered = 0;  // one row copied from the file
  double merged = 0;    // one merged list entry
};

// Times exact search on a sample for a few milliseconds.
GraphCosts measure_costs(const Context& context, const RowsView& rows, Metric metric);

// Bytes and seconds of each kind of task; the caller sets names and dependencies.
PlannedTask cost_of_sample(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);
PlannedTask cost_of_train(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);
PlannedTask cost_of_assign(const GraphShape& shape, const GraphCosts& costs, std::size_t block);
PlannedTask cost_of_build(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);
PlannedTask cost_of_merge(const GraphShape& shape, const GraphCosts& costs, std::size_t degree,
                          std::size_t block);
PlannedTask cost_of_measure(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);
PlannedTask cost_of_finish(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);

}  // namespace nearwise::plan
