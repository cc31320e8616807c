// Counts what warps ask of memory: bank conflicts of shared memory, 32-byte sectors of global memory.
#pragma once

#include "cuda_emulation/engine/access.h"
#include "cuda_emulation/engine/threads.h"

namespace cuda_emulation {

// The k-th execution of one instruction by the lanes of a warp is taken for one request.
void profile_access(const CheckedAccess& access, const Region& region, const Thread& thread);

}  // namespace cuda_emulation
