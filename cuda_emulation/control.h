// What tests may ask of the emulated device and tell it. CUDA code itself never sees this.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_emulation/device/collectives.h"

namespace cuda_emulation {

struct Options {
  // Blocks interleaved at a time, 1 to 64. CUDA_EMULATION_RESIDENT_BLOCKS.
  int resident_blocks = 4;
  // Order of lanes, warps, blocks and streams, and preemption. CUDA_EMULATION_SEED.
  std::uint64_t seed = 1;
  // Probability of a switch at a checked access.
  double preemption = 0.02;
  // Bank conflicts and sectors per source line, printed at exit. CUDA_EMULATION_PROFILE.
  bool profile = false;
  // Switches without any thread finishing or passing a barrier before a livelock is reported.
  std::uint64_t watchdog = 200'000'000;
};
Options& options();

struct Statistics {
  std::uint64_t switches = 0;
  std::uint64_t barriers = 0;
  std::uint64_t atomics = 0;
  std::uint64_t checked_accesses = 0;
  std::array<std::uint64_t, collectives> collectives_done = {};
};
Statistics& statistics();

// How often warps met in the collectives of one line: in votes, where a kernel took which way.
struct Meeting {
  Collective collective;
  std::string file;
  int line = 0;
  std::uint64_t times = 0;
  std::uint64_t not_zero = 0;  // a vote that at least one lane agreed to; of shuffles, one lane's result
};
// Since the start or the last forget_meetings(), by file and line.
std::vector<Meeting> meetings();
void forget_meetings();

// Whether kernels were compiled with the hooks that check every access.
bool checks_accesses();

// What the device found wrong with a kernel or a copy: empty where nothing. Until it is taken every CUDA call that
// uses the device fails, as after a failed kernel on a GPU. Taking it makes the device usable again.
std::string report();
std::string take_report();

// From now on the `count`-th allocation of device or pinned memory fails, once; 0: none does. At the start of a
// program CUDA_EMULATION_FAIL_ALLOCATION.
void fail_allocation(std::uint64_t count);
// Allocations tried so far.
std::uint64_t allocations();

// The next call of this name ("cudaGetDeviceCount") fails with `status`, once.
void fail_call(const std::string& name, cudaError_t status);

// What exists at this moment; all zero at the end of a program that cleans up. Runs what is queued first. Memory pools
// do not count: without allocations they hold nothing.
struct Accounting {
  std::size_t device_bytes = 0;
  std::size_t device_allocations = 0;
  std::size_t pinned_allocations = 0;
  std::size_t streams = 0;
  std::size_t events = 0;
  std::size_t cublas_handles = 0;
  friend bool operator==(const Accounting&, const Accounting&) = default;
};
Accounting accounting();
std::string to_string(const Accounting& accounting);

// Streams in which kernels or copies are queued, of all devices. Runs nothing.
std::size_t busy_streams();

// Prints bank conflicts (shared memory) and 32-byte sectors (global memory) per source line.
void print_profile();

}  // namespace cuda_emulation
