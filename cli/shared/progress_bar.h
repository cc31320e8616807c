// Progress on stderr: a bar with rate and time left on a terminal, a plain line now and then elsewhere.
//
// Work that lasts less than a second shows nothing. Thread rule: update() may be called by any thread, one call at
// a time or several.
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
  // The rate is given in `unit`s per second, of which the whole work has `units`; there is none without a unit.
  ProgressBar(ProgressStyle style, std::string operation, std::string unit = {}, std::uint64_t units = 0);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() { finish(); }

  void update(std::uint64_t done, std::uint64_t total);

  // Takes the bar off the terminal: to be called before anything else is printed.
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
