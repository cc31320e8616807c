#include "shard/at_once.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/progress.h"
#include "core/start_thread.h"

namespace nearwise::shard {
namespace {

// Interval at which cancellation of the call is passed on to the members.
constexpr std::chrono::milliseconds cancellation_interval{10};

ErrorCode code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.code();
  } catch (const std::bad_alloc&) {
    return ErrorCode::out_of_memory;
  } catch (...) {
    return ErrorCode::internal;
  }
}

// An error that names a device already: nested members do not add theirs.
class NamedError : public Error {
 public:
  using Error::Error;
};

// Invalid arguments are the same on every device; other errors name theirs. What remains was thrown by the
// progress callback of the caller.
[[noreturn]] void rethrow_naming(const std::exception_ptr& error, const Place& place, std::size_t member,
                                 std::size_t members) {
  const auto named = [&](ErrorCode code, const char* what) {
    return NamedError(code,
                      fmt::format("{} (on {}, number {} of {})", what, name(place), member + 1, members));
  };
  try {
    std::rethrow_exception(error);
  } catch (const NamedError&) {
    throw;
  } catch (const Error& known) {
    if (known.code() == ErrorCode::invalid_argument || known.code() == ErrorCode::cancelled) throw;
    throw named(known.code(), known.what());
  } catch (const std::bad_alloc&) {
    throw named(ErrorCode::out_of_memory, "memory: the machine has no more memory");
  } catch (const std::system_error& refused) {
    throw named(ErrorCode::internal, refused.what());
  }
}

// Scales the progress of one member to its units.
ProgressCallback scaled_to(ProgressMeter& meter, std::uint64_t units) {
  return [&meter, units, reported = std::uint64_t{0}](const Progress& progress) mutable {
    const double share =
        progress.total == 0 ? 1 : static_cast<double>(progress.done) / static_cast<double>(progress.total);
    const auto done = std::min(units, static_cast<std::uint64_t>(share * static_cast<double>(units)));
    if (done <= reported) return;
    meter.add(done - reported);
    reported = done;
  };
}

class Run {
 public:
  Run(const Context& context, std::span<const Member> members, const Work& work)
      : context_(context),
        members_(members),
        work_(work),
        meter_(context.state().options.progress, context.state().clock, work.operation, total_of(work)),
        errors_(members.size()) {
    for (std::size_t i = 0; i < members.size(); ++i)
      contexts_.push_back(members[i].context.with_progress(scaled_to(meter_, work.units[i])));
  }

  void run() {
    context_.state().cancel.check();
    {
      std::vector<std::jthread> threads;
      threads.reserve(members_.size());
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if (work_.units[i] == 0) continue;
        {
          const std::lock_guard lock(mutex_);
          ++running_;
        }
        try {
          threads.push_back(
              start_thread("the thread of a device", [this, i](const std::stop_token&) { run_member(i); }));
        } catch (...) {
          finish(i, std::current_exception());
          break;
        }
      }
      wait();
    }
    report_errors();
    meter_.finish();
  }

 private:
  static std::uint64_t total_of(const Work& work) {
    std::uint64_t total = 0;
    for (const std::uint64_t units : work.units) total += units;
    return total;
  }

  void run_member(std::size_t i) noexcept {
    try {
      work_.run(i, contexts_[i]);
      finish(i, nullptr);
    } catch (...) {
      finish(i, std::current_exception());
    }
  }

  void finish(std::size_t i, const std::exception_ptr& error) noexcept {
    const std::lock_guard lock(mutex_);
    errors_[i] = error;
    if (error) cancel_others(i, code_of(error));
    --running_;
    changed_.notify_one();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    while (running_ != 0) {
      changed_.wait_for(lock, cancellation_interval);
      if (context_.cancelled()) cancel_from(0);
    }
  }

  // A wrong argument may be wrong for a member of lower number too: that one's error is the one to report, no
  // matter which found it first. Who was cancelled has nothing to say.
  void cancel_others(std::size_t i, ErrorCode code) const noexcept {
    if (code != ErrorCode::cancelled) cancel_from(code == ErrorCode::invalid_argument ? i + 1 : 0);
  }

  void cancel_from(std::size_t first) const noexcept {
    for (std::size_t i = first; i < contexts_.size(); ++i) contexts_[i].cancel();
  }

  // Errors of cancelled members are reported only if there are no others.
  void report_errors() const {
    for (const bool cancelled : {false, true})
      for (std::size_t i = 0; i < errors_.size(); ++i)
        if (errors_[i] && (code_of(errors_[i]) == ErrorCode::cancelled) == cancelled)
          rethrow_naming(errors_[i], members_[i].context.place(), i, members_.size());
  }

  const Context& context_;
  const std::span<const Member> members_;
  const Work& work_;
  ProgressMeter meter_;
  std::vector<Context> contexts_;
  std::vector<std::exception_ptr> errors_;
  std::mutex mutex_;  // guards errors_ and running_ while threads run
  std::condition_variable changed_;
  std::size_t running_ = 0;
};

}  // namespace

void run_at_once(const Context& context, std::span<const Member> members, const Work& work) {
  try {
    Run(context, members, work).run();
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "{}: the machine has no more memory", work.operation);
  }
}

}  // namespace nearwise::shard
