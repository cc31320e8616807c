// The operations of the CPU backend, each defined in a .cpp of this folder. Those that are not defined are not
// entered in its table (backend.cpp).
#pragma once

#include "backend/ops.h"

namespace nearwise::cpu {

#define OPERATION(result, name, parameters) result name parameters;
#include "backend/operations.def"
#undef OPERATION

}  // namespace nearwise::cpu
