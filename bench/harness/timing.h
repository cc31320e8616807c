// Seconds of a piece of work, and statistics of several measurements.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <thread>
#include <vector>

namespace nearwise::bench {

double seconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Times {
  double seconds = 0;
  double cpu_seconds = 0;  // of all threads; less sensitive to other load
};

Times timed(const auto& work) {
  const std::clock_t before = std::clock();
  const double wall = seconds(work);
  return {wall, static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC};
}

// Idle threads of MKL's OpenMP spin for 200 ms after a product and would take cores from the next
// measurement.
inline void let_threads_rest() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

inline double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

double median_seconds(std::size_t repeat, const auto& work) {
  std::vector<double> times;
  for (std::size_t i = 0; i < repeat; ++i) times.push_back(seconds(work));
  return median(times);
}

// Largest over smallest: smaller differences are noise.
inline double spread(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return most / least;
}

}  // namespace nearwise::bench
