// CUDA threads, warps and blocks of the running kernel. One kernel runs at a time, under the runtime's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda_emulation/control.h"
#include "cuda_emulation/device/launch.h"
#include "cuda_emulation/engine/memory.h"
#include "cuda_emulation/engine/order.h"

namespace cuda_emulation {

inline constexpr char poison = '\xff';  // a NaN as a float, -1 as an integer

enum class ThreadState : std::uint8_t { ready, in_warp_collective, at_block_barrier, at_grid_barrier, done };

struct Block;
struct Warp;

struct Thread {
  uint3 position;  // in the block
  unsigned lane;
  Block* block;
  Warp* warp;
  unsigned index;  // in the grid
  ThreadState state;
  Collective collective;
  Barrier barrier;
  unsigned mask;
  int parameter;
  int width;
  std::uint64_t value;
  std::uint64_t result;
  const char* file;
  int line;
  void* stack_pointer;
  char* stack;
  unsigned clock;
  std::array<unsigned, 32> seen;  // clocks of the warp's lanes at the last common __syncwarp
  VectorClock acquired;           // effective now
  VectorClock pending;            // read by atomics, effective after a fence
  VectorClock released;           // by the last fence, published by atomics
};

// A collective that some lanes of its mask have reached.
struct PendingCollective {
  Collective collective;
  unsigned mask;
  unsigned arrived;
};

struct Warp {
  Block* block;
  unsigned index;
  unsigned alive;  // bit mask of lanes
  unsigned ready;
  std::array<Thread*, 32> lanes;
  std::vector<PendingCollective> pending_collectives;
};

struct Block {
  unsigned slot;
  unsigned index;  // in the grid
  uint3 position;
  unsigned size;
  unsigned alive;
  unsigned waiting;  // threads at the block's barrier
  unsigned epoch;    // barriers passed, plus one
  std::uint32_t ready_warps;
  int votes;  // nonzero predicates of the threads at the barrier
  int voters;
  const char* barrier_file;
  int barrier_line;
  std::vector<Warp> warps;
  std::vector<Thread*> threads;
  std::vector<char> saved_shared;  // static shared memory while another block occupies the section
  std::unique_ptr<char[]> dynamic_shared;
  Region static_region;
  Region dynamic_region;
};

struct Machine {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  const KernelCall* call = nullptr;
  int device = 0;
  unsigned launch = 0;  // number of the launch; a grid barrier counts as one

  std::vector<std::unique_ptr<Block>> slots;
  std::uint64_t ready_blocks = 0;
  std::vector<unsigned> order;  // execution order of the grid's blocks
  std::size_t next_block = 0;
  unsigned alive = 0;
  unsigned at_grid_barrier = 0;
  Block* mapped = nullptr;  // block whose static shared memory occupies the section

  void* host_stack = nullptr;
  std::string failure;
  cudaError_t status = cudaSuccess;
  std::uint64_t random = 1;
  std::uint64_t switches_since_progress = 0;
  std::vector<Thread> threads;
  std::vector<char*> stacks;
  std::unordered_map<const void*, VectorClock> atomics;  // published at each atomic variable
};
extern Machine machine;

// The running thread; nullptr outside kernels.
extern Thread* running;
inline Thread& current() { return *running; }

// Accesses by the emulator itself are not checked, although inline functions may be shared with instrumented
// files. Per host thread, since only one of them runs a kernel.
extern thread_local bool inside_emulator;
class InsideEmulator {
 public:
  InsideEmulator() { inside_emulator = true; }
  ~InsideEmulator() { inside_emulator = false; }
  InsideEmulator(const InsideEmulator&) = delete;
  InsideEmulator& operator=(const InsideEmulator&) = delete;
};

}  // namespace cuda_emulation
