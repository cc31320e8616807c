// Memory requests of warps: bank conflicts of shared memory, 32-byte sectors of global memory.
#pragma once

#include "cuda_emulation/engine/access.h"
#include "cuda_emulation/engine/threads.h"

namespace cuda_emulation {

// The n-th executions of an instruction by the lanes of a warp count as one request.
void profile_access(const CheckedAccess& access, const Region& region, const Thread& thread);

}  // namespace cuda_emulation
