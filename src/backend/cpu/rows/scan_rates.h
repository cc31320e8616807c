// How fast a scan multiplies on this machine, alone: what `nearwise info` prints and speed claims are judged by.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

// Seconds of the fastest of a few runs: the slower ones were disturbed by something else.
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

// Multiplications and additions per nanosecond on one thread, rows in the second-level cache, nothing selected.
double scan_gflops(const ScanKernel& kernel);

}  // namespace nearwise::cpu
