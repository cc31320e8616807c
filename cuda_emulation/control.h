// Interface for tests of the emulated device: options, fault injection, findings, resource accounting.
// Kernels and the code that launches them never include it.
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
  // Blocks that run interleaved, 1 to 64. CUDA_EMULATION_RESIDENT_BLOCKS.
  int resident_blocks = 4;
  // Seeds the order of lanes, warps, blocks and streams, and preemption. CUDA_EMULATION_SEED.
  std::uint64_t seed = 1;
  // Probability of a thread switch after a checked access.
  double preemption = 0.02;
  // Counts bank conflicts and sectors per source line, printed at exit. CUDA_EMULATION_PROFILE.
  bool profile = false;
  // Asynchronous copies read pageable memory as late as they may, and a source that changed is a finding.
  // CUDA_EMULATION_LATE_COPIES.
  bool late_copies = false;
  // Thread switches without a thread that exits or passes a barrier before a livelock is reported.
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

// Executions of the collectives of one source line. Votes show which branch a kernel took, without marks in
// its source.
struct CollectiveCount {
  Collective collective;
  std::string file;
  int line = 0;
  std::uint64_t times = 0;
  std::uint64_t not_zero = 0;  // executions with a nonzero result (of a shuffle: the lowest lane's)
};
// Counts since the start or the last reset, ordered by file and line.
std::vector<CollectiveCount> collective_counts();
void reset_collective_counts();

// Whether kernels were compiled with the hooks that check every access.
bool checks_accesses();

// The first error the device found in a kernel or a copy, or an empty string. Every CUDA call that uses the
// device fails until the report is taken, as after a failed kernel on a GPU; taking it makes the device
// usable again.
std::string report();
std::string take_report();

// The `count`-th allocation of device or pinned memory from now on fails, once; 0: none does. The initial
// value is CUDA_EMULATION_FAIL_ALLOCATION.
void fail_allocation(std::uint64_t count);
// Allocations attempted so far.
std::uint64_t allocations();

// The next call of this name ("cudaGetDeviceCount") fails with `status`, once.
void fail_call(const std::string& name, cudaError_t status);

// Resources that exist now; all zero after a program has cleaned up. Runs queued work first. Memory pools are
// not counted: they hold nothing without allocations.
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

// Streams of all devices with queued kernels or copies. Runs nothing.
std::size_t busy_streams();

// Prints bank conflicts of shared memory and 32-byte sectors of global memory per source line.
void print_profile();

}  // namespace cuda_emulation
