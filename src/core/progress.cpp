#include "core/progress.h"

#include <chrono>
#include <utility>

#include "core/check.h"

namespace nearwise {
namespace {

constexpr double seconds_between_reports = 0.05;

thread_local const CancelFlag* thread_cancel_flag = nullptr;

}  // namespace

void CancelFlag::stop() { fail(ErrorCode::cancelled, "stopped: the operation was cancelled"); }

double machine_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void check_cancelled() {
  if (thread_cancel_flag != nullptr) thread_cancel_flag->check();
}

const CancelFlag* replace_thread_cancel_flag(const CancelFlag* flag) noexcept {
  return std::exchange(thread_cancel_flag, flag);
}

ReportThrottle::ReportThrottle(const Clock& clock)
    : clock_(clock), next_(clock() + seconds_between_reports) {}

bool ReportThrottle::is_due() {
  const double now = clock_();
  if (now < next_) return false;
  next_ = now + seconds_between_reports;
  return true;
}

ProgressMeter::ProgressMeter(const ProgressCallback& callback, const Clock& clock, const char* operation,
                             std::uint64_t total)
    : callback_(callback), operation_(operation), total_(total) {
  if (callback) throttle_.emplace(clock);
}

void ProgressMeter::add(std::uint64_t units) {
  done_.fetch_add(units, std::memory_order_relaxed);
  if (!callback_) return;
  // If another thread is reporting, this one does not wait.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (!throttle_->is_due()) return;
  // Read under the lock, so that reports never decrease.
  callback_({operation_, done_.load(std::memory_order_relaxed), total_});
}

void ProgressMeter::finish() {
  if (!callback_) return;
  const std::lock_guard lock(mutex_);
  callback_({operation_, total_, total_});
}

}  // namespace nearwise
