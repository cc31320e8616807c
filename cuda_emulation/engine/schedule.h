// Scheduler: fibers switch at collectives, barriers, atomics and, in the check build, at any access.
#pragma once

#include <string>

#include "cuda_emulation/engine/threads.h"

namespace cuda_emulation {

std::uint64_t next_random();

void set_ready(Thread& thread);
void clear_ready(Thread& thread);

// Switches to `thread`; returns when the calling thread is scheduled again.
void switch_to(Thread& thread);
// The next ready thread after the calling one has blocked: of its warp, else of its block, else of any block.
// Reports a deadlock.
Thread& choose_next();
// A random ready thread.
Thread& choose_any();
// Blocks the calling thread in `state` and runs others.
void wait_in(ThreadState state);

// Counts a switch of a spinning thread; reports a livelock after Options::watchdog switches without progress.
void count_switch();

// Ends the kernel with this error.
[[noreturn]] void fail_kernel(cudaError_t status, const std::string& finding);
std::string describe(const Thread& thread);

// Runs a kernel to completion. Throws Failure.
void run_kernel(const cudaLaunchConfig_t& config, const KernelCall& call, int device);

// In rendezvous.cpp: a lane has exited; completes the collectives or barriers that waited only for it.
void leave_warp(Warp& warp, unsigned lane);
void leave_block(Block& block);
void leave_grid();

const char* name(Collective collective);

}  // namespace cuda_emulation
