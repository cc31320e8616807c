// Threads of a Context: a bound on the threads that work for it, and tasks by index.
#pragma once

#include <cstddef>
#include <functional>

namespace nearwise {

// All contexts of a process share one set of worker threads (core/parallel.cpp). The workers that a Threads
// needs are started by its constructor, so that no work fails later for want of a thread.
class Threads {
 public:
  // Throws Error(out_of_memory) if the system refuses to start a thread. No more threads are started than the
  // process has CPUs.
  explicit Threads(int count);
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return count_; }

  // Calls body(0) ... body(tasks - 1), in any order and at once, the caller's thread taking part; returns
  // when all are done. The first exception stops the tasks not yet begun and reaches the caller;
  // std::bad_alloc arrives as Error(out_of_memory). Calls may nest: at most count() threads work for all of
  // them, and several callers may each use their own thread besides. Needs no memory. Every task runs in the
  // default floating-point environment: a process that flushes denormals to zero (any library built with
  // -ffast-math switches that on) gets the same bits. In a forked child all tasks run on the caller's thread
  // (core/fork.h). Error(corrupt) if a mapped file has lost pages (core/lost_pages.h).
  void for_each(std::size_t tasks, const std::function<void(std::size_t)>& body) const;

 private:
  friend class WorkerPool;

  const int count_;
  mutable int active_ = 0;  // threads that work for this now; guarded by the mutex of the pool
};

// The number of threads that this process may use (its CPU affinity, not the size of the machine).
int available_threads();

}  // namespace nearwise
