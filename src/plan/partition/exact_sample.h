// The rows by which recall is predicted and measured, with their neighbours by exact search: searched for once, in a file.
#pragma once

#include "graph/build/recall_sample.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// What take_sample() wrote. rows: of the file, at least 2. Throws Error(corrupt).
graph::RecallSample taken_sample(const Context& context, const GraphWork& work, const RowsView& rows);

}  // namespace nearwise::plan
