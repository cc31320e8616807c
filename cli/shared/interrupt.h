// Ctrl-C (SIGINT), SIGTERM and SIGHUP: stop soon, leave no half-written file, say so in the exit code.
//
// The first signal cancels work under protect(), saves too, which then cleans up; with nothing protected, as
// in loads, the process ends at once. The second signal ends it whatever it does: the first one removes the
// handler.
//
// The handler only posts a semaphore; a thread of ours does what a handler may not. sigwait() would not do:
// libraries may start threads before main() with signals unblocked, and by the default action one of them
// would end the process.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "nearwise/context.h"

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
    Protection(Interrupt& interrupt, const Context& work) : interrupt_(interrupt), scope_(work) {}
    Protection(const Protection&) = delete;
    Protection& operator=(const Protection&) = delete;
    ~Protection();

   private:
    Interrupt& interrupt_;
    const CancellationScope scope_;
  };

  // While the result lives, the first signal cancels `work`: its operations, and what the calling thread does
  // without a context (save, write_neighbors, VectorWriter, ...), end with Error(cancelled). Throws that if a
  // signal has arrived already. Not nested.
  [[nodiscard]] Protection protect(const Context& work = Context::cpu({.threads = 1}));

  // Throws Error(cancelled) once a signal has arrived.
  void check() const;

  // The signal that arrived, 0 if none.
  static int signal();

 private:
  void wait_for_signal();

  std::function<void(int)> give_up_;
  std::mutex mutex_;             // guards the next one
  std::optional<Context> work_;  // under protection; none: nothing is protected
  std::thread thread_;
};

}  // namespace nearwise::cli
