// The operations of the CUDA backend, each defined in a .cu of this folder. Those that are not defined are
// not entered in its table (backend.cu).
#pragma once

#include "backend/ops.h"

namespace nearwise::gpu {

#define OPERATION(result, name, parameters) result name parameters;
#include "backend/operations.def"
#undef OPERATION

}  // namespace nearwise::gpu
