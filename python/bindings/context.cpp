// Contexts for calls from Python, and the calling thread's side of a running operation.
#include "nearwise/context.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>

#include "bindings.h"

namespace nearwise::python {
namespace {

// A fifth of the 100 ms in which Ctrl-C is to be answered; the rest belongs to the operation's own stopping.
constexpr auto time_between_looks = std::chrono::milliseconds(20);

// Steps that any machine of ours does in about a millisecond.
constexpr double brief_steps = 1 << 20;

bool interpreter_is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// The work of one call, on a thread of its own.
class Work {
 public:
  Work(const Context& shared, bool reports, const std::function<void(const Context&)>& work)
      : context_(shared.with_progress(reports ? ProgressCallback([this](const Progress& now) { record(now); })
                                              : ProgressCallback())) {
    const auto body = [this, &work] {
      try {
        work(context_);
      } catch (...) {
        error_ = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      finished_ = true;
      changed_.notify_one();
    };
    try {
      thread_ = std::thread(body);
    } catch (const std::system_error&) {
      body();  // no thread to be had: better done without an ear for Ctrl-C than not at all
    }
  }
  ~Work() { stop(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time_between_looks, [this] { return finished_; });
  }
  // Cancels what still runs and waits for its end.
  void stop() {
    context_.cancel();
    if (thread_.joinable()) thread_.join();
  }
  std::exception_ptr error() const { return error_; }

  // What has been reported since the last call of this.
  bool news(Progress& latest) {
    const std::lock_guard lock(mutex_);
    latest = latest_;
    return std::exchange(has_news_, false);
  }

 private:
  void record(const Progress& now) {
    const std::lock_guard lock(mutex_);
    latest_ = now;
    has_news_ = true;
  }

  const Context context_;
  std::exception_ptr error_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool finished_ = false;
  bool has_news_ = false;
  Progress latest_;
  std::thread thread_;
};

// Gives the interpreter lock away, and takes it back at the end.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  ~Unlocked() {
    if (thread_ != nullptr) PyEval_RestoreThread(thread_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  void lock() { PyEval_RestoreThread(std::exchange(thread_, nullptr)); }
  void unlock() { thread_ = PyEval_SaveThread(); }

 private:
  PyThreadState* thread_;
};

// A daemon thread whose interpreter ends must not take the lock again: older versions would unwind it by force,
// through our frames. Stopping here is what newer versions do.
void rest_if_ending(Work& work) {
  if (!interpreter_is_ending()) return;
  work.stop();
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void report(Work& work, nb::handle progress) {
  Progress latest;
  if (!progress.is_none() && work.news(latest)) progress(latest.done, latest.total);
}

}  // namespace

Context context_for(const std::string& device, int threads, std::uint64_t memory_limit,
                    const std::string& isa, std::uint64_t seed) {
  using Key = std::tuple<std::string, int, std::string>;
  using Cache = std::map<Key, Context>;
  // Never destroyed: at exit the thread library may be gone before us. Left behind in a forked child, where the
  // worker threads it counts on do not exist.
  static Cache* cache = new Cache;
  static pid_t owner = getpid();
  if (owner != getpid()) {
    cache = new Cache;
    owner = getpid();
  }
  ContextOptions options;
  options.threads = threads;
  options.memory_limit = memory_limit;
  options.seed = seed;
  options.isa = isa;
  if (memory_limit != 0 || seed != 0) return Context::on(device, std::move(options));
  const Key key(device, threads, isa);
  auto found = cache->find(key);
  if (found == cache->end()) found = cache->emplace(key, Context::on(device, std::move(options))).first;
  return found->second;
}

void run(const Context& context, nb::handle progress, const std::function<void(const Context&)>& work) {
  std::exception_ptr raised;
  {
    Unlocked interpreter;
    Work running(context, !progress.is_none(), work);
    while (!raised && !running.wait()) {
      rest_if_ending(running);
      interpreter.lock();
      try {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        report(running, progress);
      } catch (...) {
        raised = std::current_exception();
      }
      interpreter.unlock();
    }
    running.stop();
    rest_if_ending(running);
    interpreter.lock();
    if (raised) std::rethrow_exception(raised);
    if (running.error()) std::rethrow_exception(running.error());
    report(running, progress);  // the last one says done == total
  }
}

void run_briefly(const Context& context, const std::function<void(const Context&)>& work) {
  const nb::gil_scoped_release unlocked;
  work(context);
}

void run_by_size(const Context& context, nb::handle progress, double steps,
                 const std::function<void(const Context&)>& work) {
  if (progress.is_none() && steps <= brief_steps)
    run_briefly(context, work);
  else
    run(context, progress, work);
}

}  // namespace nearwise::python
