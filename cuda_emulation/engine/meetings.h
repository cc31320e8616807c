// How often warps met in a collective, by the line that calls it: which way a kernel went, without a mark in its source.
#pragma once

#include "cuda_emulation/engine/threads.h"

namespace cuda_emulation {

// Of the lanes that met, any one: they were given their results.
void count_meeting(const Thread& thread);

}  // namespace cuda_emulation
