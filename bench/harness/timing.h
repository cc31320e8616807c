// Seconds of a piece of work, and what is reported of several such measurements.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace nearwise::bench {

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Idle threads of MKL's OpenMP spin for 200 ms after a product, those of other pools for less: whoever is measured next
// would share the cores with them.
inline void let_threads_rest() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Largest over smallest: what a difference must exceed to mean anything.
inline double spread(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return most / least;
}

}  // namespace nearwise::bench
