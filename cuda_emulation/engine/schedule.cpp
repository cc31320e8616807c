#include "cuda_emulation/engine/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cuda_emulation/engine/failure.h"
#include "cuda_emulation/engine/fiber.h"

// Defined by the linker around the section of static shared variables; null if no kernel has any.
extern "C" char __start_cuda_emulation_shared[] __attribute__((weak));
extern "C" char __stop_cuda_emulation_shared[] __attribute__((weak));

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace cuda_emulation {

Thread* running = nullptr;
Machine machine;
thread_local bool inside_emulator = true;

namespace {

constexpr int max_resident_blocks = 64;  // one bit of ready_blocks each
constexpr int max_listed_threads = 40;

std::size_t static_shared_bytes() {
  if (__start_cuda_emulation_shared == nullptr) return 0;
  return static_cast<std::size_t>(__stop_cuda_emulation_shared - __start_cuda_emulation_shared);
}

// The first set bit at or after `from`, wrapping around.
template <typename Bits>
unsigned next_bit(Bits bits, unsigned from) {
  const Bits rest = from < sizeof(Bits) * 8 ? static_cast<Bits>(bits >> from << from) : Bits{0};
  return static_cast<unsigned>(__builtin_ctzll(rest != 0 ? rest : bits));
}

void map_static_shared(Block& block) {
  const std::size_t bytes = static_shared_bytes();
  if (machine.mapped == &block) return;
  if (bytes != 0) {
    if (machine.mapped != nullptr)
      std::memcpy(machine.mapped->saved_shared.data(), __start_cuda_emulation_shared, bytes);
    std::memcpy(__start_cuda_emulation_shared, block.saved_shared.data(), bytes);
  }
  machine.mapped = &block;
}

void make_current(Thread& thread) {
  if (thread.block != machine.mapped) map_static_shared(*thread.block);
  running = &thread;
  threadIdx = thread.position;
  blockIdx = thread.block->position;
}

[[noreturn]] void return_to_host() {
  Thread& thread = current();
  running = nullptr;
  cuda_emulation_switch(&thread.stack_pointer, machine.host_stack);
  __builtin_unreachable();
}

std::string describe_state(const Thread& thread) {
  switch (thread.state) {
    case ThreadState::in_warp_collective:
      return fmt::format("{} mask {:08x} at {}:{}", name(thread.collective), thread.mask, thread.file,
                         thread.line);
    case ThreadState::at_block_barrier:
      return fmt::format("__syncthreads at {}:{}", thread.file, thread.line);
    case ThreadState::at_grid_barrier: return fmt::format("grid barrier at {}:{}", thread.file, thread.line);
    case ThreadState::done: return "exited";
    case ThreadState::ready: break;
  }
  return thread.file == nullptr ? "running"
                                : fmt::format("running, last seen at {}:{}", thread.file, thread.line);
}

std::string list_threads() {
  std::string text;
  int listed = 0;
  for (const auto& block : machine.slots) {
    if (block == nullptr) continue;
    for (const Thread* thread : block->threads)
      if (thread->state != ThreadState::done && listed++ < max_listed_threads)
        text += fmt::format("\n  {}: {}", describe(*thread), describe_state(*thread));
  }
  return text;
}

[[noreturn]] void report_deadlock() {
  std::string text = "deadlock: no thread can run" + list_threads();
  for (const auto& block : machine.slots) {
    if (block == nullptr) continue;
    for (const Warp& warp : block->warps)
      for (const PendingCollective& pending : warp.pending_collectives)
        text +=
            fmt::format("\n  block {} warp {}: {} mask {:08x} lacks lanes {:08x}", block->index, warp.index,
                        name(pending.collective), pending.mask, pending.mask & warp.alive & ~pending.arrived);
  }
  fail_kernel(cudaErrorLaunchTimeout, text);
}

void start_block(unsigned slot, unsigned index);

// Body of every fiber. A thread that has exited is reused as a thread of the next block in its slot.
void run_thread() {
  for (;;) {
    inside_emulator = false;
    machine.call->body(machine.call->call.get());
    inside_emulator = true;
    Thread& thread = current();
    Block& block = *thread.block;
    machine.switches_since_progress = 0;
    thread.state = ThreadState::done;
    clear_ready(thread);
    --block.alive;
    --machine.alive;
    leave_warp(*thread.warp, thread.lane);
    if (block.alive != 0) {
      leave_block(block);
    } else if (machine.next_block < machine.order.size()) {
      if (machine.mapped == &block) machine.mapped = nullptr;
      start_block(block.slot, machine.order[machine.next_block++]);
      Thread& next = choose_next();
      if (&next == &thread)
        make_current(thread);
      else
        switch_to(next);
      continue;
    } else if (machine.alive == 0) {
      return_to_host();
    }
    leave_grid();
    switch_to(choose_next());
  }
}

void start_thread(Block& block, unsigned index) {
  const dim3& size = machine.block;
  Thread& thread = machine.threads[std::size_t{block.slot} * block.size + index];
  Warp& warp = block.warps[index / 32];
  block.threads[index] = &thread;
  warp.lanes[index % 32] = &thread;
  warp.alive |= 1u << (index % 32);
  thread.position = {index % size.x, index / size.x % size.y, index / size.x / size.y};
  thread.lane = index % 32;
  thread.block = &block;
  thread.warp = &warp;
  thread.index = block.index * block.size + index;
  thread.file = nullptr;
  thread.line = 0;
  thread.clock = 1;
  thread.width = 32;
  thread.seen = {};
  thread.acquired = thread.pending = thread.released = {};
  // The fiber that starts the block continues in run_thread; all others start there.
  if (&thread != running) thread.stack_pointer = start_of_fiber(thread.stack, run_thread);
  set_ready(thread);
}

void start_block(unsigned slot, unsigned index) {
  if (machine.slots[slot] == nullptr) machine.slots[slot] = std::make_unique<Block>();
  Block& block = *machine.slots[slot];
  block.slot = slot;
  block.index = index;
  block.position = {index % machine.grid.x, index / machine.grid.x % machine.grid.y,
                    index / machine.grid.x / machine.grid.y};
  block.size = block.alive = machine.block.x * machine.block.y * machine.block.z;
  block.waiting = 0;
  block.epoch = 1;
  block.ready_warps = 0;
  block.votes = block.voters = 0;
  block.barrier_file = nullptr;
  block.saved_shared.assign(static_shared_bytes(), poison);
  block.dynamic_shared.reset(new char[std::max<std::size_t>(machine.shared_bytes, 1)]);
  std::memset(block.dynamic_shared.get(), poison, machine.shared_bytes);
  block.static_region = {__start_cuda_emulation_shared, static_shared_bytes()};
  block.dynamic_region = {block.dynamic_shared.get(), machine.shared_bytes};
  block.warps.resize((block.size + 31) / 32);
  block.threads.resize(block.size);
  for (unsigned i = 0; i < block.warps.size(); ++i) {
    Warp& warp = block.warps[i];
    warp.block = &block;
    warp.index = i;
    warp.alive = warp.ready = 0;
    warp.pending_collectives.clear();
  }
  machine.alive += block.size;
  for (unsigned i = 0; i < block.size; ++i) start_thread(block, i);
}

void prepare_blocks(std::size_t blocks) {
  machine.order.resize(blocks);
  for (std::size_t i = 0; i < blocks; ++i) machine.order[i] = static_cast<unsigned>(i);
  if (options().seed <= 1) return;
  for (std::size_t i = blocks; i > 1; --i) std::swap(machine.order[i - 1], machine.order[next_random() % i]);
}

}  // namespace

std::uint64_t next_random() {
  machine.random ^= machine.random << 13;
  machine.random ^= machine.random >> 7;
  machine.random ^= machine.random << 17;
  return machine.random;
}

std::string describe(const Thread& thread) {
  return fmt::format("block {} thread {} (warp {} lane {})", thread.block->index,
                     thread.warp->index * 32 + thread.lane, thread.warp->index, thread.lane);
}

void set_ready(Thread& thread) {
  thread.state = ThreadState::ready;
  thread.warp->ready |= 1u << thread.lane;
  thread.block->ready_warps |= 1u << thread.warp->index;
  machine.ready_blocks |= 1ull << thread.block->slot;
}

void clear_ready(Thread& thread) {
  if ((thread.warp->ready &= ~(1u << thread.lane)) != 0) return;
  if ((thread.block->ready_warps &= ~(1u << thread.warp->index)) != 0) return;
  machine.ready_blocks &= ~(1ull << thread.block->slot);
}

void switch_to(Thread& thread) {
  Thread& before = current();
  if (&thread == &before) return;
  ++statistics().switches;
  make_current(thread);
  cuda_emulation_switch(&before.stack_pointer, thread.stack_pointer);
}

Thread& choose_next() {
  const Thread& thread = current();
  if (thread.warp->ready != 0) return *thread.warp->lanes[next_bit(thread.warp->ready, thread.lane + 1)];
  Block* block = thread.block;
  if (block->ready_warps == 0) {
    if (machine.ready_blocks == 0) report_deadlock();
    block = machine.slots[next_bit(machine.ready_blocks, static_cast<unsigned>(next_random() & 63))].get();
  }
  const Warp& warp = block->warps[next_bit(block->ready_warps, static_cast<unsigned>(next_random() & 31))];
  return *warp.lanes[next_bit(warp.ready, 0)];
}

Thread& choose_any() {
  const auto any_below = [](std::size_t count) { return static_cast<unsigned>(next_random() % count); };
  const Block& block = *machine.slots[next_bit(machine.ready_blocks, any_below(machine.slots.size()))];
  const Warp& warp = block.warps[next_bit(block.ready_warps, any_below(block.warps.size()))];
  return *warp.lanes[next_bit(warp.ready, any_below(32))];
}

void wait_in(ThreadState state) {
  Thread& thread = current();
  thread.state = state;
  clear_ready(thread);
  switch_to(choose_next());
}

void count_switch() {
  if (++machine.switches_since_progress > options().watchdog)
    fail_kernel(cudaErrorLaunchTimeout, "livelock suspected: no thread makes progress" + list_threads());
}

void yield(const char* file, int line) {
  const InsideEmulator inside;
  Thread& thread = current();
  thread.file = file;
  thread.line = line;
  count_switch();
  switch_to(choose_any());
}

void fail_kernel(cudaError_t status, const std::string& finding) {
  machine.status = status;
  machine.failure = finding;
  return_to_host();
}

void* dynamic_shared_memory() { return current().block->dynamic_shared.get(); }

void run_kernel(const cudaLaunchConfig_t& config, const KernelCall& call, int device) {
  const dim3 grid = config.gridDim;
  const dim3 size = config.blockDim;
  gridDim = grid;
  blockDim = size;
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  const std::size_t threads = std::size_t{size.x} * size.y * size.z;
  const auto resident = std::min<std::size_t>(
      blocks, static_cast<std::size_t>(std::clamp(options().resident_blocks, 1, max_resident_blocks)));
  machine.grid = grid;
  machine.block = size;
  machine.shared_bytes = config.dynamicSmemBytes;
  machine.call = &call;
  machine.device = device;
  ++machine.launch;
  machine.slots.clear();
  machine.slots.resize(resident);
  machine.ready_blocks = 0;
  machine.alive = machine.at_grid_barrier = 0;
  machine.mapped = nullptr;
  machine.status = cudaSuccess;
  machine.random = options().seed * 0x9E3779B97F4A7C15ull + 0x1234567;
  machine.switches_since_progress = 0;
  machine.atomics.clear();
  prepare_blocks(blocks);
  machine.threads.clear();
  machine.threads.resize(resident * threads);
  while (machine.stacks.size() < machine.threads.size()) machine.stacks.push_back(new_stack());
  for (std::size_t i = 0; i < machine.threads.size(); ++i) machine.threads[i].stack = machine.stacks[i];
  machine.next_block = 0;
  running = nullptr;
  for (unsigned slot = 0; slot < resident; ++slot) start_block(slot, machine.order[machine.next_block++]);

  Thread& first = *machine.slots[0]->threads[0];
  make_current(first);
  cuda_emulation_switch(&machine.host_stack, first.stack_pointer);
  machine.mapped = nullptr;
  inside_emulator = true;
  if (machine.status != cudaSuccess) throw Failure(machine.status, machine.failure);
}

}  // namespace cuda_emulation
