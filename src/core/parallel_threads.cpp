// core/parallel.h over std::thread: slower to start than oneTBB, but ThreadSanitizer sees all of it.
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/float_environment.h"
#include "core/parallel.h"

namespace nearwise {

class Threads::Pool {};

Threads::Threads(int count) : count_(count), pool_(std::make_unique<Pool>()) {}
Threads::~Threads() = default;

namespace {

thread_local bool inside_parallel_region = false;

}  // namespace

void Threads::run_in_pool(std::size_t tasks, const std::function<void(std::size_t)>& body) const {
  std::atomic<std::size_t> next{0};
  std::exception_ptr first_exception;
  std::mutex exception_mutex;
  const auto work = [&] {
    const DefaultFloatEnvironment environment;
    for (std::size_t index = next.fetch_add(1); index < tasks; index = next.fetch_add(1)) {
      try {
        body(index);
      } catch (...) {
        next.store(tasks);
        const std::lock_guard lock(exception_mutex);
        if (!first_exception) first_exception = std::current_exception();
      }
    }
  };
  // A nested call runs on its caller's thread: the outer call already keeps every thread busy.
  std::vector<std::thread> workers;
  if (!inside_parallel_region) {
    for (int i = 1; i < count_ && static_cast<std::size_t>(i) < tasks; ++i)
      workers.emplace_back([&] {
        inside_parallel_region = true;
        work();
      });
  }
  const bool outer = inside_parallel_region;
  inside_parallel_region = true;
  work();
  inside_parallel_region = outer;
  for (std::thread& worker : workers) worker.join();
  if (first_exception) std::rethrow_exception(first_exception);
}

}  // namespace nearwise
