// Progress reports and cancellation of long operations.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "nearwise/progress.h"

namespace nearwise {

// Copies are the same flag.
class CancelFlag {
 public:
  void set() noexcept { flag_->store(true, std::memory_order_relaxed); }
  bool is_set() const noexcept { return flag_->load(std::memory_order_relaxed); }
  // Throws Error(cancelled) once set. Cheap enough for every panel of a kernel's loop.
  void check() const {
    if (is_set()) [[unlikely]]
      stop();
  }

 private:
  [[noreturn]] static void stop();
  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);
};

// For functions that take no context: throws Error(cancelled) if the flag of the calling thread is set.
// Threads have one while they are in a CancellationScope (nearwise/context.h).
void check_cancelled();
// Returns the flag before; nullptr: none.
const CancelFlag* replace_thread_cancel_flag(const CancelFlag* flag) noexcept;

using Clock = std::function<double()>;
double machine_clock();

// Lets a report pass at most every 50 ms. Not thread-safe.
class ReportThrottle {
 public:
  // The clock is kept by reference.
  explicit ReportThrottle(const Clock& clock);
  ReportThrottle(const Clock&&) = delete;
  bool is_due();

 private:
  const Clock& clock_;
  double next_;
};

// Counts units of work of many threads; calls the callback every 50 ms at most, one call at a time.
class ProgressMeter {
 public:
  ProgressMeter(const ProgressCallback& callback, const Clock& clock, const char* operation,
                std::uint64_t total);
  // Callback and clock are kept by reference: a temporary would be gone.
  ProgressMeter(const ProgressCallback&&, const Clock&, const char*, std::uint64_t) = delete;
  ProgressMeter(const ProgressCallback&, const Clock&&, const char*, std::uint64_t) = delete;
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  void add(std::uint64_t units);
  // Reports completion; without it (an exception) no last report is made.
  void finish();

 private:
  const ProgressCallback& callback_;
  const char* const operation_;
  const std::uint64_t total_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;                        // guards throttle_ and serialises the callback
  std::optional<ReportThrottle> throttle_;  // none without a callback
};

}  // namespace nearwise
