// One pool of worker threads for the process. A call of for_each() is a job on the stack of its caller, in a
// list of open jobs; workers join the newest that still wants threads. Nobody waits for a worker to begin:
// the caller works through its tasks itself, so that a busy or missing worker costs time only.
#include "core/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/float_environment.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "core/start_thread.h"

namespace nearwise {
namespace {

// ThreadSanitizer finds more with more threads than CPUs.
#ifdef __SANITIZE_THREAD__
constexpr int least_workers = 7;
#else
constexpr int least_workers = 0;
#endif

// Jobs often follow each other within microseconds, and waking a thread takes tens of them.
constexpr int yields_before_sleep = 64;

// The Threads that this thread works for.
thread_local const Threads* current = nullptr;

}  // namespace

class WorkerPool {
 public:
  struct Job {
    Job(const Threads& used, std::size_t count, const std::function<void(std::size_t)>& function)
        : threads(used), tasks(count), body(function) {}

    const Threads& threads;
    const std::size_t tasks;
    const std::function<void(std::size_t)>& body;
    std::atomic<std::size_t> next = 0;
    std::atomic<int> helpers = 0;  // changed under the mutex of the pool
    // Guarded by the mutex of the pool.
    std::exception_ptr failure;
    Job* older = nullptr;
    std::condition_variable helped;  // there are no helpers left
  };

  // Never destroyed: other threads may work while the process ends.
  static WorkerPool& get() {
    alignas(WorkerPool) static std::byte storage[sizeof(WorkerPool)];
    static WorkerPool* const pool = new (storage) WorkerPool;
    return *pool;
  }

  void start_workers(int wanted) {
    const std::lock_guard one_at_a_time(starting_);
    for (; workers_ < wanted; ++workers_)
      start_thread(fmt::format("thread {} of {}", workers_ + 2, wanted + 1), [this](const std::stop_token&) {
        work();
      }).detach();
  }

  void run(Job& job) {
    const Threads& threads = job.threads;
    const bool nested = current == &threads;
    int wanted = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!nested) ++threads.active_;
      job.older = std::exchange(newest_, &job);
      posted_.fetch_add(1, std::memory_order_relaxed);
      const auto others = static_cast<int>(std::min<std::size_t>(job.tasks - 1, most_woken));
      wanted = std::min({sleeping_, others, threads.count_ - threads.active_});
    }
    for (; wanted > 0; --wanted) wake_.notify_one();
    work_on(job);
    for (int i = 0; i < yields_before_sleep && job.helpers.load(std::memory_order_relaxed) != 0; ++i)
      std::this_thread::yield();
    std::unique_lock lock(mutex_);
    remove(job);
    job.helped.wait(lock, [&] { return job.helpers.load(std::memory_order_relaxed) == 0; });
    if (!nested) --threads.active_;
    if (newest_ != nullptr && sleeping_ > 0) wake_.notify_one();  // this thread's place is free
  }

 private:
  static constexpr std::size_t most_woken = 4096;

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (Job* const job = open_job()) {
        help(*job, lock);
        continue;
      }
      const std::uint64_t seen = posted_.load(std::memory_order_relaxed);
      lock.unlock();
      for (int i = 0; i < yields_before_sleep && posted_.load(std::memory_order_relaxed) == seen; ++i)
        std::this_thread::yield();
      lock.lock();
      if (open_job() != nullptr) continue;
      ++sleeping_;
      wake_.wait(lock);
      --sleeping_;
    }
  }

  // The newest first: others may wait for it.
  Job* open_job() const {
    for (Job* job = newest_; job != nullptr; job = job->older)
      if (job->threads.active_ < job->threads.count_ &&
          job->next.load(std::memory_order_relaxed) < job->tasks)
        return job;
    return nullptr;
  }

  void help(Job& job, std::unique_lock<std::mutex>& lock) {
    ++job.threads.active_;
    job.helpers.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    work_on(job);
    lock.lock();
    --job.threads.active_;
    if (job.helpers.fetch_sub(1, std::memory_order_relaxed) == 1) job.helped.notify_one();
  }

  void work_on(Job& job) {
    const DefaultFloatEnvironment environment;
    const Threads* const before = std::exchange(current, &job.threads);
    for (std::size_t index = job.next.fetch_add(1, std::memory_order_relaxed); index < job.tasks;
         index = job.next.fetch_add(1, std::memory_order_relaxed)) {
      try {
        job.body(index);
      } catch (...) {
        job.next.store(job.tasks, std::memory_order_relaxed);
        const std::lock_guard lock(mutex_);
        if (!job.failure) job.failure = std::current_exception();
      }
    }
    current = before;
  }

  void remove(Job& job) {
    Job** link = &newest_;
    while (*link != &job) link = &(*link)->older;
    *link = job.older;
  }

  std::mutex starting_;  // one thread starts workers
  int workers_ = 0;      // guarded by starting_

  std::mutex mutex_;
  std::condition_variable wake_;
  Job* newest_ = nullptr;
  int sleeping_ = 0;
  std::atomic<std::uint64_t> posted_ = 0;  // jobs so far; changed under the mutex
};

Threads::Threads(int count) : count_(count) {
  touch_thread_locals();
  if (in_forked_child()) return;
  WorkerPool::get().start_workers(std::min(count, std::max(available_threads(), least_workers + 1)) - 1);
}

void Threads::for_each(std::size_t tasks, const std::function<void(std::size_t)>& body) const {
  const LostPagesScope lost_pages;
  try {
    if (tasks > 1 && count_ > 1 && !in_forked_child()) {
      WorkerPool::Job job(*this, tasks, body);
      WorkerPool::get().run(job);
      if (job.failure) std::rethrow_exception(std::exchange(job.failure, nullptr));
    } else {
      const DefaultFloatEnvironment environment;
      for (std::size_t index = 0; index < tasks; ++index) body(index);
    }
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "memory: the machine has no more memory");
  }
  check_lost_pages();
}

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());  // more CPUs than cpu_set_t can name
}

}  // namespace nearwise
