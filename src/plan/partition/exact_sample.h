// The recall sample of a plan: searched exactly once, kept in a file.
#pragma once

#include "graph/recall_sample.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// Reads the output of take_sample(). rows: all rows of the file, at least 2. Throws Error(corrupt).
graph::RecallSample load_sample(const Context& context, const GraphWork& work, const RowsView& rows);

}  // namespace nearwise::plan
