// Declares every operation. The CPU backend defines a subset; its table (backend.cpp) lists those only.
#pragma once

#include "backend/ops.h"

namespace nearwise::cpu {

#define OPERATION(result, name, parameters) result name parameters;
#include "backend/operations.def"
#undef OPERATION

}  // namespace nearwise::cpu
