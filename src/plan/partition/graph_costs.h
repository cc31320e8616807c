// What the tasks of a graph cost, from a short measurement on this machine.
#pragma once

#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// Seconds. Only `pair` is measured; the others, and the ratios in the .cpp, are guesses that nobody has checked yet.
struct GraphCosts {
  double pair = 0;      // of a row and a query of exact search
  double gathered = 0;  // a row read and put in its place
  double merged = 0;    // an entry of a neighbour list that is merged
};

// Searches some of the rows for a few milliseconds.
GraphCosts measure_costs(const Context& context, const RowsView& rows, Metric metric);

// Bytes and seconds of each kind of task; names and order are the caller's.
PlannedTask cost_of_sample(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);
PlannedTask cost_of_train(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);
PlannedTask cost_of_assign(const GraphShape& shape, const GraphCosts& costs, std::size_t block);
PlannedTask cost_of_build(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);
PlannedTask cost_of_merge(const GraphShape& shape, const GraphCosts& costs, std::size_t degree,
                          std::size_t block);
PlannedTask cost_of_measure(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);
PlannedTask cost_of_finish(const GraphShape& shape, const GraphCosts& costs, std::size_t degree);

}  // namespace nearwise::plan
