#include "cuda_emulation/engine/order.h"

#include <algorithm>

#include "cuda_emulation/engine/threads.h"

namespace cuda_emulation {
namespace {

void join_latest(std::map<unsigned, unsigned>& into, const std::map<unsigned, unsigned>& from) {
  for (const auto& [key, time] : from) {
    unsigned& known = into[key];
    known = std::max(known, time);
  }
}

}  // namespace

void VectorClock::join(const VectorClock& other) {
  join_latest(blocks, other.blocks);
  join_latest(threads, other.threads);
}

bool happened_before(const Timestamp& timestamp, const Thread& thread) {
  if (timestamp.thread == thread.index) return true;
  const Block& block = *thread.block;
  const unsigned other_block = timestamp.thread / block.size;
  const unsigned other_thread = timestamp.thread % block.size;
  if (other_block == block.index) {
    if (timestamp.epoch < block.epoch) return true;
    if (other_thread / 32 == thread.warp->index && thread.seen[other_thread % 32] >= timestamp.clock)
      return true;
  }
  const VectorClock& known = thread.acquired;
  const auto by_block = known.blocks.find(other_block);
  if (by_block != known.blocks.end() && by_block->second > timestamp.epoch) return true;
  const auto by_thread = known.threads.find(timestamp.thread);
  return by_thread != known.threads.end() && by_thread->second >= timestamp.clock;
}

void pass_fence(Thread& thread) {
  thread.acquired.join(thread.pending);
  thread.pending = {};
  thread.released = thread.acquired;
  const unsigned first = thread.index - thread.lane;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (thread.seen[lane] == 0) continue;
    unsigned& known = thread.released.threads[first + lane];
    known = std::max(known, thread.seen[lane]);
  }
  thread.released.threads[thread.index] = thread.clock;
  unsigned& epoch = thread.released.blocks[thread.block->index];
  epoch = std::max(epoch, thread.block->epoch);
  ++thread.clock;
}

void pass_atomic(Thread& thread, VectorClock& variable) {
  thread.pending.join(variable);
  variable.join(thread.released);
}

}  // namespace cuda_emulation
