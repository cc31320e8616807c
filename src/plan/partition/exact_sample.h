// The recall sample of a plan: searched exactly once, kept in a file.
#pragma once

#include "graph/recall_sample.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// Reads the output of take_sample(). The file must have at least 2 rows. Throws Error(corrupt).
graph::RecallSample load_sample(const Context& context, const GraphWork& work, const PlanInput& input);

}  // namespace nearwise::plan
