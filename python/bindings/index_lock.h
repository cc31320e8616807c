// The lock of an index: many readers or one writer.
//
// Unlike a std::shared_timed_mutex it is open in a forked child, whatever threads held it in the parent: they
// do not exist in the child. The library sees to it that what they were changing is whole (core/fork.h).
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace nearwise::python {

class IndexLock {
 public:
  bool try_lock() {
    State seen = state_.load();
    return holders_of(seen) == 0 && state_.compare_exchange_strong(seen, {getpid(), writing});
  }
  void unlock() {
    State mine = {getpid(), writing};
    state_.compare_exchange_strong(mine, {getpid(), 0});
  }
  void lock() {
    while (!try_lock()) pause();
  }

  bool try_lock_shared() {
    State seen = state_.load();
    while (holders_of(seen) != writing)
      if (state_.compare_exchange_weak(seen, {getpid(), holders_of(seen) + 1})) return true;
    return false;
  }
  void unlock_shared() {
    State seen = state_.load();
    while (holders_of(seen) > 0 && !state_.compare_exchange_weak(seen, {getpid(), holders_of(seen) - 1})) {
    }
  }
  void lock_shared() {
    while (!try_lock_shared()) pause();
  }

  // Short beside the milliseconds to minutes that calls hold the lock.
  static void pause() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

 private:
  static constexpr std::int32_t writing = -1;

  struct State {
    pid_t process;
    std::int32_t holders;  // readers, or `writing`
  };
  static_assert(sizeof(pid_t) == 4 && std::atomic<State>::is_always_lock_free);

  static std::int32_t holders_of(const State& state) { return state.process == getpid() ? state.holders : 0; }

  std::atomic<State> state_ = State{0, 0};
};

}  // namespace nearwise::python
