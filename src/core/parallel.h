// Threads of a Context: one bounded set of workers, tasks by index.
//
// Two implementations of this header: parallel_tbb.cpp (oneTBB, the product) and parallel_threads.cpp
// (std::thread, for ThreadSanitizer, which cannot see into Debian's oneTBB). The build picks the file.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace nearwise {

class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return count_; }

  // Calls body(0) ... body(tasks - 1), in any order and at once, the caller's thread taking part; returns
  // when all are done. The first exception stops the tasks not yet begun and reaches the caller. Calls may
  // nest. Every task runs in the default floating-point environment: a process that flushes denormals to zero
  // (any library built with -ffast-math switches that on) gets the same bits. In a forked child all tasks run
  // on the caller's thread (core/fork.h).
  void for_each(std::size_t tasks, const std::function<void(std::size_t)>& body) const;

 private:
  class Pool;
  void run_in_pool(std::size_t tasks, const std::function<void(std::size_t)>& body) const;

  int count_;
  std::unique_ptr<Pool> pool_;  // none in a forked child
};

// The number of threads that this process may use (its CPU affinity, not the size of the machine).
int available_threads();

}  // namespace nearwise
