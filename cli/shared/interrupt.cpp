#include "cli/shared/interrupt.h"

#include <semaphore.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "nearwise/error.h"

namespace nearwise::cli {
namespace {

constexpr std::array handled_signals = {SIGINT, SIGTERM, SIGHUP};

// Process-wide, as the handlers are. sem_post is one of the few calls a handler may make.
sem_t arrivals;
std::atomic<int> arrived_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void note_signal(int number) {
  const int saved_errno = errno;
  arrived_signal.store(number, std::memory_order_relaxed);
  sem_post(&arrivals);
  errno = saved_errno;
}

}  // namespace

Interrupt::Interrupt(std::function<void(int signal)> give_up) : give_up_(std::move(give_up)) {
  sem_init(&arrivals, 0, 0);
  for (const int number : handled_signals) {
    struct sigaction present = {};
    // A signal that was ignored at the start (nohup, a background job of a script) stays ignored.
    if (sigaction(number, nullptr, &present) != 0 || present.sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = note_signal;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigaction(number, &action, nullptr);
  }
  thread_ = std::thread([this] { wait_for_signal(); });
}

Interrupt::~Interrupt() {
  sem_post(&arrivals);
  thread_.join();
}

void Interrupt::wait_for_signal() {
  while (sem_wait(&arrivals) != 0) {
  }
  const int number = signal();
  if (number == 0) return;  // the destructor's post
  const std::lock_guard lock(mutex_);
  if (work_)
    work_->cancel();
  else
    give_up_(number);
}

Interrupt::Protection Interrupt::protect(const Context& work) {
  const std::lock_guard lock(mutex_);
  check();
  work_ = work;
  return Protection(*this, work);
}

Interrupt::Protection::~Protection() {
  const std::lock_guard lock(interrupt_.mutex_);
  interrupt_.work_.reset();
}

void Interrupt::check() const {
  if (signal() != 0) throw Error(ErrorCode::cancelled, "interrupted");
}

int Interrupt::signal() { return arrived_signal.load(std::memory_order_relaxed); }

}  // namespace nearwise::cli
