// Which thread runs: fibers are switched at collectives, barriers, atomics and, in the check build, at any access.
#pragma once

#include <string>

#include "cuda_emulation/engine/threads.h"

namespace cuda_emulation {

std::uint64_t next_random();

void set_ready(Thread& thread);
void clear_ready(Thread& thread);

// Lets the chosen thread run; returns when the calling thread is chosen again.
void switch_to(Thread& thread);
// The next one after the calling thread has stopped: of its warp, of its block, of any block. Reports a deadlock.
Thread& choose_next();
// Any one that is ready.
Thread& choose_any();
// Stops the calling thread in `state` and runs others.
void wait_in(ThreadState state);

// Counts a switch that a waiting thread asks for; reports a livelock when nothing else happens for long.
void count_switch();

// Ends the kernel with this finding.
[[noreturn]] void fail_kernel(cudaError_t status, const std::string& finding);
std::string describe(const Thread& thread);

// Runs a kernel to its end. Throws Failure.
void run_kernel(const cudaLaunchConfig_t& config, const KernelCall& call, int device);

// In rendezvous.cpp: a lane has left its warp, its block, the grid.
void leave_warp(Warp& warp, unsigned lane);
void leave_block(Block& block);
void leave_grid();

const char* name(Collective collective);

}  // namespace cuda_emulation
