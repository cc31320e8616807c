// Contexts for calls from Python, and the calling thread's side of a running operation.
#include "nearwise/context.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>

#include "bindings.h"

namespace nearwise::python {
namespace {

// Ctrl-C must take effect within 100 ms; the other 80 ms are for the operation to stop.
constexpr auto poll_interval = std::chrono::milliseconds(20);

// Takes about a millisecond on the slowest supported machine.
constexpr double brief_steps = 1 << 20;

bool interpreter_is_ending() {
#if defined(Py_LIMITED_API)
  // 3.12 has it under its old name only, which is not in the stable ABI: asked for at run time.
  using Ask = int (*)();
  static const auto ask = [] {
    void* const found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    return reinterpret_cast<Ask>(found != nullptr ? found : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
  }();
  return ask != nullptr && ask() != 0;
#elif PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// Thread-local memory of shared libraries is allocated on first use, and glibc ends the process if it cannot.
// A new thread asks for as much first, and can still give up.
bool takes_thread_locals() {
  constexpr std::size_t enough = 16 << 10;
  void* const volatile probe = std::malloc(enough);  // volatile: must not be optimized away
  std::free(probe);
  if (probe == nullptr) return false;
  // The first use, for exceptions. Declared without side effects: a call whose result nobody needs is left
  // out.
  [[maybe_unused]] const volatile int exceptions = std::uncaught_exceptions();
  return true;
}

// The work of one call, on a thread of its own.
class Work {
 public:
  Work(const Context& shared, bool reports, const std::function<void(const Context&)>& work)
      : context_(shared.with_progress(reports ? ProgressCallback([this](const Progress& now) { record(now); })
                                              : ProgressCallback())) {
    const auto body = [this, &work] {
      has_memory_ = takes_thread_locals();
      try {
        if (has_memory_) {
          const CancellationScope files(context_);
          work(context_);
        }
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
      body();  // no thread available: run here, without reacting to Ctrl-C
    }
  }
  ~Work() { stop(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, poll_interval, [this] { return finished_; });
  }
  // Cancels the work if it still runs, and waits for it.
  void stop() {
    context_.cancel();
    if (thread_.joinable()) thread_.join();
  }
  // Throws what the work has thrown. After stop(), or once wait() has returned true.
  void check() const {
    if (!has_memory_) throw Error(ErrorCode::out_of_memory, "no memory to start the thread of a call");
    if (error_) std::rethrow_exception(error_);
  }

  // Whether progress was reported since the last call, and the latest report.
  bool take_report(Progress& latest) {
    const std::lock_guard lock(mutex_);
    latest = latest_;
    return std::exchange(has_report_, false);
  }

 private:
  void record(const Progress& now) {
    const std::lock_guard lock(mutex_);
    latest_ = now;
    has_report_ = true;
  }

  const Context context_;
  std::exception_ptr error_;
  bool has_memory_ = true;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool finished_ = false;
  bool has_report_ = false;
  Progress latest_;
  std::thread thread_;
};

// Releases the interpreter lock, and takes it back at the end.
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

// A daemon thread must not take the lock while the interpreter shuts down: older Python versions would unwind
// the thread through our frames. Newer versions block it, as this does.
void block_if_ending(Work& work) {
  if (!interpreter_is_ending()) return;
  work.stop();
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void report(Work& work, nb::handle progress) {
  Progress latest;
  if (!progress.is_none() && work.take_report(latest)) progress(latest.done, latest.total);
}

}  // namespace

Settings Settings::with_memory_limit(std::uint64_t limit) const {
  Settings changed = *this;
  changed.memory_limit = limit;
  return changed;
}

Settings Settings::with_memory_in_use(std::uint64_t bytes) const {
  Settings changed = *this;
  if (memory_limit != 0) changed.memory_in_use += bytes;
  return changed;
}

Context context_for(const Settings& settings) {
  using Key = std::tuple<std::string, int, std::string>;
  using Cache = std::map<Key, Context>;
  // Never destroyed: at exit the thread library may be unloaded first. Abandoned in a forked child, which
  // does not have the worker threads.
  static Cache* cache = new Cache;
  static pid_t owner = getpid();
  if (owner != getpid()) {
    cache = new Cache;
    owner = getpid();
  }
  ContextOptions options;
  options.threads = settings.threads;
  options.memory_limit = settings.memory_limit;
  options.memory_in_use = settings.memory_in_use;
  options.seed = settings.seed;
  options.isa = settings.isa;
  if (settings.memory_limit != 0 || settings.seed != 0)
    return Context::on(settings.device, std::move(options));
  const Key key(settings.device, settings.threads, settings.isa);
  auto found = cache->find(key);
  if (found == cache->end())
    found = cache->emplace(key, Context::on(settings.device, std::move(options))).first;
  return found->second;
}

void run(const Context& context, nb::handle progress, const std::function<void(const Context&)>& work) {
  std::exception_ptr raised;
  {
    Unlocked interpreter;
    Work running(context, !progress.is_none(), work);
    while (!raised && !running.wait()) {
      block_if_ending(running);
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
    block_if_ending(running);
    interpreter.lock();
    if (raised) std::rethrow_exception(raised);
    running.check();
    report(running, progress);  // the final report: done == total
  }
}

void run(const std::function<void()>& work) {
  run(context_for({}), nb::none(), [&](const Context&) { work(); });
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

void bind_context(nb::module_& module) {
  nb::class_<Settings>(module, "Settings", "The resolved settings of one call; 0 and empty: the default.")
      .def(nb::init<std::string, int, std::uint64_t, std::string, std::uint64_t>(), nb::arg("device"),
           nb::arg("threads"), nb::arg("memory_limit"), nb::arg("isa"), nb::arg("seed"));
}

}  // namespace nearwise::python
