// Warp collectives, block barriers and grid barriers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cuda_emulation/engine/collective_counts.h"
#include "cuda_emulation/engine/schedule.h"

namespace cuda_emulation {
namespace {

// Calls visit(lane, thread) for the lanes of a mask.
template <typename Visit>
void for_each_lane(const Warp& warp, unsigned lanes, const Visit& visit) {
  for (unsigned remaining = lanes; remaining != 0; remaining &= remaining - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(remaining));
    visit(lane, *warp.lanes[lane]);
  }
}

std::uint32_t combine(Collective collective, std::uint32_t a, std::uint32_t b) {
  const auto signed_a = static_cast<std::int32_t>(a);
  const auto signed_b = static_cast<std::int32_t>(b);
  switch (collective) {
    case Collective::add: return a + b;
    case Collective::min_signed: return static_cast<std::uint32_t>(std::min(signed_a, signed_b));
    case Collective::max_signed: return static_cast<std::uint32_t>(std::max(signed_a, signed_b));
    case Collective::min_unsigned: return std::min(a, b);
    case Collective::max_unsigned: return std::max(a, b);
    case Collective::bit_and: return a & b;
    case Collective::bit_or: return a | b;
    default: return a ^ b;
  }
}

std::uint64_t reduce(const Warp& warp, Collective collective, unsigned lanes) {
  std::uint32_t result = 0;
  bool first = true;
  for_each_lane(warp, lanes, [&](unsigned, const Thread& thread) {
    const auto value = static_cast<std::uint32_t>(thread.value);
    result = first ? value : combine(collective, result, value);
    first = false;
  });
  return result;
}

unsigned ballot(const Warp& warp, unsigned lanes) {
  unsigned votes = 0;
  for_each_lane(warp, lanes, [&](unsigned lane, const Thread& thread) {
    if (thread.value != 0) votes |= 1u << lane;
  });
  return votes;
}

// The lane a shuffle reads; the lane itself if the distance leaves the segment.
int shuffle_source(Collective collective, int lane, int parameter, int width) {
  const int first = lane & ~(width - 1);
  switch (collective) {
    case Collective::shuffle: return first + (parameter & (width - 1));
    case Collective::shuffle_up: return lane - parameter < first ? lane : lane - parameter;
    case Collective::shuffle_down: return lane + parameter >= first + width ? lane : lane + parameter;
    default: return (lane ^ parameter) < first + width ? lane ^ parameter : lane;
  }
}

void shuffle_lanes(const Warp& warp, const PendingCollective& pending) {
  for_each_lane(warp, pending.arrived, [&](unsigned lane, Thread& thread) {
    const int source =
        shuffle_source(pending.collective, static_cast<int>(lane), thread.parameter, thread.width);
    if (source < 0 || source > 31 || (pending.arrived >> source & 1u) == 0)
      fail_kernel(
          cudaErrorLaunchFailure,
          fmt::format("{}: {} reads lane {}, not a participant (mask {:08x}, participants {:08x}) at {}:{}",
                      describe(thread), name(pending.collective), source, pending.mask, pending.arrived,
                      thread.file, thread.line));
    thread.result = warp.lanes[static_cast<unsigned>(source)]->value;
  });
}

void match_lanes(const Warp& warp, unsigned lanes) {
  for_each_lane(warp, lanes, [&](unsigned, Thread& thread) {
    thread.result = 0;
    for_each_lane(warp, lanes, [&](unsigned other, const Thread& candidate) {
      if (candidate.value == thread.value) thread.result |= 1u << other;
    });
  });
}

// __syncwarp is the only warp collective that orders memory: each lane then sees all earlier accesses of the
// others.
void sync_lanes(const Warp& warp, unsigned lanes) {
  std::array<unsigned, 32> seen = {};
  bool acquired_any = false;
  for_each_lane(warp, lanes, [&](unsigned lane, const Thread& thread) {
    for (unsigned i = 0; i < 32; ++i) seen[i] = std::max(seen[i], thread.seen[i]);
    seen[lane] = thread.clock;
    acquired_any |= !thread.acquired.empty();
  });
  VectorClock common;
  if (acquired_any)
    for_each_lane(warp, lanes, [&](unsigned, const Thread& thread) { common.join(thread.acquired); });
  for_each_lane(warp, lanes, [&](unsigned, Thread& thread) {
    thread.seen = seen;
    ++thread.clock;
    thread.result = 0;
    if (acquired_any) thread.acquired = common;
  });
}

void broadcast(const Warp& warp, unsigned lanes, std::uint64_t result) {
  for_each_lane(warp, lanes, [&](unsigned, Thread& thread) { thread.result = result; });
}

void complete(Warp& warp, std::size_t which) {
  const PendingCollective pending = warp.pending_collectives[which];
  warp.pending_collectives.erase(warp.pending_collectives.begin() + static_cast<std::ptrdiff_t>(which));
  ++statistics().collectives_done[static_cast<std::size_t>(pending.collective)];
  const unsigned lanes = pending.arrived;
  switch (pending.collective) {
    case Collective::shuffle:
    case Collective::shuffle_up:
    case Collective::shuffle_down:
    case Collective::shuffle_xor: shuffle_lanes(warp, pending); break;
    case Collective::ballot: broadcast(warp, lanes, ballot(warp, lanes)); break;
    case Collective::any: broadcast(warp, lanes, ballot(warp, lanes) != 0); break;
    case Collective::all: broadcast(warp, lanes, ballot(warp, lanes) == lanes); break;
    case Collective::match_any: match_lanes(warp, lanes); break;
    case Collective::match_all:
      match_lanes(warp, lanes);
      for_each_lane(warp, lanes, [&](unsigned, Thread& thread) {
        if (thread.result != lanes) thread.result = 0;
      });
      break;
    case Collective::sync_warp: sync_lanes(warp, lanes); break;
    default: broadcast(warp, lanes, reduce(warp, pending.collective, lanes));
  }
  count_collective(*warp.lanes[static_cast<unsigned>(__builtin_ctz(lanes))]);
  // Inlines set_ready for all lanes at once: most thread switches of a kernel are at collectives.
  for_each_lane(warp, lanes, [](unsigned, Thread& thread) { thread.state = ThreadState::ready; });
  warp.ready |= lanes;
  warp.block->ready_warps |= 1u << warp.index;
  machine.ready_blocks |= 1ull << warp.block->slot;
}

void complete_block_barrier(Block& block) {
  ++statistics().barriers;
  machine.switches_since_progress = 0;
  ++block.epoch;
  block.waiting = 0;
  VectorClock common;
  for (const Thread* thread : block.threads) common.join(thread->acquired);
  for (Thread* thread : block.threads) {
    if (thread->state != ThreadState::at_block_barrier) continue;
    const bool all = block.votes == block.voters;
    thread->result = static_cast<std::uint64_t>(thread->barrier == Barrier::count ? block.votes
                                                : thread->barrier == Barrier::all ? all
                                                                                  : block.votes != 0);
    if (!common.empty()) thread->acquired = common;
    set_ready(*thread);
  }
  block.votes = block.voters = 0;
  block.barrier_file = nullptr;
}

}  // namespace

const char* name(Collective collective) {
  static constexpr std::array<const char*, collectives> names = {
      "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",   "__ballot_sync",
      "__any_sync",        "__all_sync",        "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync",
      "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync",
      "__match_any_sync",  "__match_all_sync",  "__syncwarp"};
  return names[static_cast<std::size_t>(collective)];
}

std::uint64_t warp_collective(Collective collective, unsigned mask, std::uint64_t value, int parameter,
                              int width, const char* file, int line) {
  const InsideEmulator inside;
  Thread& thread = current();
  Warp& warp = *thread.warp;
  const unsigned own_bit = 1u << thread.lane;
  thread.collective = collective;
  thread.mask = mask;
  thread.value = value;
  thread.parameter = parameter;
  thread.width = width;
  thread.file = file;
  thread.line = line;
  if ((mask & own_bit) == 0)
    fail_kernel(cudaErrorLaunchFailure,
                fmt::format("{}: calls {} with mask {:08x}, which lacks its lane, at {}:{}", describe(thread),
                            name(collective), mask, file, line));
  std::size_t which = 0;
  while (which < warp.pending_collectives.size() &&
         (warp.pending_collectives[which].mask != mask ||
          warp.pending_collectives[which].collective != collective))
    ++which;
  if (which == warp.pending_collectives.size()) warp.pending_collectives.push_back({collective, mask, 0});
  PendingCollective& pending = warp.pending_collectives[which];
  pending.arrived |= own_bit;
  if (pending.arrived == (mask & warp.alive))
    complete(warp, which);
  else
    wait_in(ThreadState::in_warp_collective);
  return thread.result;
}

int block_barrier(Barrier kind, bool predicate, const char* file, int line) {
  const InsideEmulator inside;
  Thread& thread = current();
  Block& block = *thread.block;
  if (block.barrier_file == nullptr) {
    block.barrier_file = file;
    block.barrier_line = line;
  } else if (block.barrier_line != line || std::strcmp(block.barrier_file, file) != 0) {
    fail_kernel(cudaErrorLaunchFailure,
                fmt::format("{}: divergent __syncthreads: this thread at {}:{}, another at {}:{}",
                            describe(thread), file, line, block.barrier_file, block.barrier_line));
  }
  block.votes += predicate;
  ++block.voters;
  ++block.waiting;
  thread.barrier = kind;
  thread.file = file;
  thread.line = line;
  thread.state = ThreadState::at_block_barrier;
  clear_ready(thread);
  leave_block(block);
  switch_to(choose_next());
  return static_cast<int>(thread.result);
}

void grid_barrier(const char* file, int line) {
  const InsideEmulator inside;
  Thread& thread = current();
  if (machine.next_block < machine.order.size())
    fail_kernel(cudaErrorCooperativeLaunchTooLarge,
                "a grid barrier with more blocks than are resident (Options::resident_blocks)");
  thread.file = file;
  thread.line = line;
  thread.state = ThreadState::at_grid_barrier;
  clear_ready(thread);
  ++machine.at_grid_barrier;
  leave_grid();
  switch_to(choose_next());
}

void leave_warp(Warp& warp, unsigned lane) {
  warp.alive &= ~(1u << lane);
  for (std::size_t i = 0; i < warp.pending_collectives.size();) {
    if (warp.pending_collectives[i].arrived == (warp.pending_collectives[i].mask & warp.alive))
      complete(warp, i);
    else
      ++i;
  }
}

void leave_block(Block& block) {
  if (block.waiting == block.alive) complete_block_barrier(block);
}

void leave_grid() {
  if (machine.at_grid_barrier == 0 || machine.at_grid_barrier != machine.alive) return;
  machine.at_grid_barrier = 0;
  ++machine.launch;  // orders all accesses before the barrier before those after it
  for (const auto& block : machine.slots) {
    if (block == nullptr) continue;
    for (Thread* thread : block->threads)
      if (thread->state == ThreadState::at_grid_barrier) set_ready(*thread);
  }
}

}  // namespace cuda_emulation
