// Happens-before order across warps and blocks, through fences and atomics.
#pragma once

#include <map>

namespace cuda_emulation {

struct Thread;

struct VectorClock {
  std::map<unsigned, unsigned> blocks;   // block -> barriers passed
  std::map<unsigned, unsigned> threads;  // thread of the grid -> clock

  bool empty() const { return blocks.empty() && threads.empty(); }
  void join(const VectorClock& other);
};

// Position of an access in its thread's execution.
struct Timestamp {
  unsigned thread;  // index in the grid
  unsigned clock;   // number of __syncwarp calls and fences of the thread
  unsigned epoch;   // number of __syncthreads calls of the block
};

// Whether an access at `timestamp` is ordered before what `thread` does now.
bool happened_before(const Timestamp& timestamp, const Thread& thread);

// Fence: makes pending clocks effective, and lets the next atomic publish everything done so far.
void pass_fence(Thread& thread);

// Atomic access: reads the clocks published at the variable and publishes the thread's released clocks.
void pass_atomic(Thread& thread, VectorClock& variable);

}  // namespace cuda_emulation
