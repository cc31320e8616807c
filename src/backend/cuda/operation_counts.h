// Counts the calls of operations, so that a check of a device can say which of them it has run.
#pragma once

#include "backend/ops.h"

namespace nearwise::gpu {

// The table with every operation counted. For one table: operation_calls() has its counts.
Ops counted(Ops ops);

}  // namespace nearwise::gpu
