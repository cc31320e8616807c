#include "index/index_lock.h"

#include <chrono>
#include <thread>

#include "core/fork.h"

namespace nearwise::index {
namespace {

// A word of another process says nothing about this one.
std::uint64_t own(std::uint64_t word) {
  const std::uint64_t process = std::uint64_t{fork_depth()} << 32U;
  return (word >> 32U << 32U) == process ? word : process;
}

// Waits by polling: what a thread of the parent held must not keep a forked child waiting, and cancellation
// must end a wait.
class Wait {
 public:
  explicit Wait(const CancelFlag* cancel) : cancel_(cancel) {}

  void again() {
    if (cancel_ != nullptr) cancel_->check();
    check_cancelled();
    // Additions of a few vectors take microseconds, searches milliseconds.
    if (++times_ < yields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  static constexpr int yields = 50;

  const CancelFlag* const cancel_;
  int times_ = 0;
};

}  // namespace

bool IndexLock::try_read(bool gives_way) {
  Word seen = readers_.load();
  while ((own(seen) & (gives_way ? writing | waiting : writing)) == 0)
    if (readers_.compare_exchange_weak(seen, own(seen) + 1)) return true;
  return false;
}

bool IndexLock::try_change() {
  Word seen = change_.load();
  return own(seen) == own(0) && change_.compare_exchange_strong(seen, own(0) + 1);
}

bool IndexLock::try_write() {
  Word seen = readers_.load();
  while ((own(seen) & readers) == 0)
    if (readers_.compare_exchange_weak(seen, own(0) | writing)) return true;
  while ((own(seen) & waiting) == 0 && !readers_.compare_exchange_weak(seen, own(seen) | waiting)) {
  }
  return false;
}

bool IndexLock::is_changing() const { return own(change_.load()) != own(0); }

IndexLock::Reading::Reading(IndexLock& lock, const CancelFlag* cancel) : lock_(lock), process_(fork_depth()) {
  const std::uint64_t before = lock.writes_.load();
  Wait wait(cancel);
  while (!lock.try_read(lock.writes_.load() == before)) wait.again();
}

IndexLock::Reading::~Reading() {
  if (process_ == fork_depth()) --lock_.readers_;
}

IndexLock::Changing::Changing(IndexLock& lock, const CancelFlag* cancel)
    : lock_(lock), process_(fork_depth()) {
  Wait wait(cancel);
  while (!lock.try_change()) wait.again();
}

IndexLock::Changing::~Changing() {
  if (process_ == fork_depth()) --lock_.change_;
}

IndexLock::Writing::Writing(Changing& changing, const CancelFlag* cancel)
    : lock_(changing.lock_), process_(fork_depth()) {
  Wait wait(cancel);
  try {
    while (!lock_.try_write()) wait.again();
  } catch (...) {
    lock_.readers_ &= ~waiting;
    throw;
  }
}

IndexLock::Writing::~Writing() {
  if (process_ != fork_depth()) return;
  ++lock_.writes_;
  lock_.readers_ &= ~writing;
}

}  // namespace nearwise::index
