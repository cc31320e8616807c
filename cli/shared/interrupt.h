// Ctrl-C (SIGINT), SIGTERM and SIGHUP: stop soon, leave no half-written file, say so in the exit code.
//
// The first signal stops work under protect(), which then cleans up; with nothing protected the process ends
// at once. The second signal ends the process whatever it does, because the first one removes the handler.
//
// The handler only posts a semaphore; a thread of ours does what a handler may not. sigwait() would not do:
// libraries may start threads before main() with signals unblocked, and by the default action one of them
// would end the process.
#pragma once

#include <functional>
#include <mutex>
#include <thread>

namespace nearwise::cli {

class Interrupt {
 public:
  // give_up(signal) is called on our thread when a signal arrives and nothing is protected; it must not
  // return. One Interrupt at a time: signal handlers are the process's.
  explicit Interrupt(std::function<void(int signal)> give_up);
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  class Protection {
   public:
    explicit Protection(Interrupt& interrupt) : interrupt_(interrupt) {}
    Protection(const Protection&) = delete;
    Protection& operator=(const Protection&) = delete;
    ~Protection();

   private:
    Interrupt& interrupt_;
  };

  // While the result lives, the first signal calls stop (on our thread); the work ends at its next check().
  // Throws Error(cancelled) if one has arrived already.
  [[nodiscard]] Protection protect(std::function<void()> stop = {});

  // Throws Error(cancelled) once a signal has arrived.
  void check() const;

  // The signal that arrived, 0 if none.
  static int signal();

 private:
  void wait_for_signal();

  std::function<void(int)> give_up_;
  std::mutex mutex_;  // guards the two below
  bool is_protected_ = false;
  std::function<void()> stop_;
  std::thread thread_;
};

}  // namespace nearwise::cli
