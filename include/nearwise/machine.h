// What this build found on this machine: for `nearwise info`, bug reports and tests.
#pragma once

#include <string>
#include <vector>

#include "nearwise/types.h"

namespace nearwise {

std::string version();

// Instruction sets compiled into this build that this CPU can run, best first ("avx512", "avx2", "sse4",
// "portable", or "neon", ...). Any of them is accepted as ContextOptions::isa.
std::vector<std::string> instruction_sets();

struct DeviceInfo {
  std::string name;  // "cpu", "cuda:0"
  std::string model;
  std::vector<std::string> operations;  // what the backend implements
};
std::vector<DeviceInfo> devices();

// The BLAS this build is linked with. Exact search does not use it (its kernels are our own); it serves LAPACK
// and large plain products.
struct BlasInfo {
  std::string library;    // as it describes itself: name, version, core type
  double gflops = 0;      // measured, one thread, [512, 512] products
  double own_gflops = 0;  // our own kernel on the same shape
  std::string warning;    // empty, or what is wrong and how to mend it
};
BlasInfo measure_blas();

}  // namespace nearwise
