// Progress on stderr: a bar with rate and time left on a terminal, elsewhere a line at most every 5 s.
//
// Work of less than a second shows nothing. update() may be called by any thread, also concurrently.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "nearwise/context.h"

namespace nearwise::cli {

enum class ProgressStyle : std::uint8_t {
  none,
  lines,  // at most one per 5 s
  bar,    // one line of a terminal, redrawn
};

// none when quiet, bar when stderr is a terminal that can move its cursor, lines otherwise.
ProgressStyle choose_progress_style(bool quiet);

class ProgressBar {
 public:
  // The rate is in `unit`s per second, of which the whole work has `units`; without a unit none is shown.
  ProgressBar(ProgressStyle style, std::string operation, std::string unit = {}, std::uint64_t units = 0);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() { finish(); }

  void update(std::uint64_t done, std::uint64_t total);

  // Clears the bar from the terminal. To be called before anything else is printed.
  void finish();

  // For ContextOptions::progress; valid while the bar lives.
  ProgressCallback callback();

 private:
  using Clock = std::chrono::steady_clock;

  const ProgressStyle style_;
  const std::string operation_;
  const std::string unit_;
  const double units_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;  // guards the two below
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
  bool is_drawn_ = false;
};

}  // namespace nearwise::cli
