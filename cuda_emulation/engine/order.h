// What a thread knows to have happened before: through fences and atomics, beyond its own warp and block.
#pragma once

#include <map>

namespace cuda_emulation {

struct Thread;

struct Knowledge {
  std::map<unsigned, unsigned> blocks;   // block: barriers passed
  std::map<unsigned, unsigned> threads;  // thread of the grid: clock

  bool empty() const { return blocks.empty() && threads.empty(); }
  void join(const Knowledge& other);
};

// Where in a thread's life an access was made.
struct Moment {
  unsigned thread;  // of the grid
  unsigned clock;   // counts __syncwarp and fences of the thread
  unsigned epoch;   // counts __syncthreads of its block
};

// Whether what was done at `moment` is ordered before what `thread` does now.
bool happened_before(const Moment& moment, const Thread& thread);

// A fence: what was acquired becomes usable, and what was done so far becomes releasable by the next atomic.
void pass_fence(Thread& thread);

// An atomic access of `thread` to a variable: takes what others released there, releases what it has.
void pass_atomic(Thread& thread, Knowledge& variable);

}  // namespace cuda_emulation
