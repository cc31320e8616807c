#include "core/start_thread.h"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include "core/check.h"

namespace nearwise {
namespace {

// The thread-local memory of a library is allocated as a whole when any of it is used first.
thread_local bool touched = false;

// Thread-local memory of shared libraries is allocated on first use, and glibc ends the process if it cannot.
// A new thread asks for as much first, and can still give up.
bool has_memory_for_thread_locals() {
  constexpr std::size_t enough = 16 << 10;
  void* const volatile probe = std::malloc(enough);  // volatile: must not be optimized away
  std::free(probe);
  return probe != nullptr;
}

// Signals belong to the threads of the application, except those that a thread causes itself.
void block_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF})
    sigdelset(&signals, own);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

enum class StartState : std::uint8_t { pending, succeeded, failed };

// What a new thread tells the one that starts it, which waits for it and then destroys this.
class StartReport {
 public:
  void set(StartState state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    changed_.notify_one();  // under the lock: the other thread cannot return before
  }

  bool succeeded() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ != StartState::pending; });
    return state_ == StartState::succeeded;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  StartState state_ = StartState::pending;
};

}  // namespace

void touch_thread_locals() {
  *static_cast<volatile bool*>(&touched) = true;
  // Declared without side effects: a call whose result nobody needs is left out.
  [[maybe_unused]] const volatile int exceptions = std::uncaught_exceptions();
}

std::jthread start_thread(const std::string& name, std::function<void(const std::stop_token&)> body) {
  std::string reason = "no memory";
  StartReport report;
  try {
    std::jthread thread([&report, work = std::move(body)](const std::stop_token& stop) {
      if (!has_memory_for_thread_locals()) {
        report.set(StartState::failed);
        return;
      }
      touch_thread_locals();
      block_signals();
      pthread_setname_np(pthread_self(), "nearwise");
      report.set(StartState::succeeded);
      work(stop);
    });
    if (report.succeeded()) return thread;
  } catch (const std::exception& error) {  // std::system_error or std::bad_alloc
    reason = error.what();
  }
  fail(ErrorCode::out_of_memory,
       "threads: the system refused to start {} ({}): ask for fewer threads, or raise its limits", name,
       reason);
}

}  // namespace nearwise
