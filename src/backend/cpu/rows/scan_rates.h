// Speed of a scan on this machine without selection, as `nearwise info` prints it.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

// Seconds of the fastest run, which is the least disturbed one.
template <typename Work>
double fastest_seconds(int repetitions, const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Multiplications and additions per ns on one thread, with vectors in the L2 cache.
double scan_gflops(const ScanKernel& kernel);

}  // namespace nearwise::cpu
