// Counts executions of collectives by source line.
#pragma once

#include "cuda_emulation/engine/threads.h"

namespace cuda_emulation {

// Counts the completed collective that `thread`, the lowest lane, took part in.
void count_collective(const Thread& thread);

}  // namespace cuda_emulation
