// Runs tasks in this process, one after the other; each uses all threads and memory of the context.
#include <algorithm>
#include <cmath>
#include <exception>
#include <stop_token>
#include <thread>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/float_environment.h"
#include "io/files/file_error.h"
#include "nearwise/plan.h"
#include "plan/engine/file_lock.h"
#include "plan/engine/ledger.h"

namespace nearwise {
namespace {

using plan::FileLock;
using plan::Ledger;
using plan::Task;

void check_context(const Plan::State& state, const Context& context) {
  require(context.seed() == state.seed, "plan: it was made with seed {}, given a context with seed {}",
          state.seed, context.seed());
  require(context.memory_limit() == 0 || context.memory_limit() >= state.memory_limit,
          "plan: it was made for {} bytes of memory, given a context with {}", state.memory_limit,
          context.memory_limit());
}

std::filesystem::path lock_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail_file(ErrorCode::cannot_create, "create", folder, error.value());
  return folder / "lock";
}

// Prefetches the input of the next task while the current one works.
class ReadAhead {
 public:
  explicit ReadAhead(const Task* task) {
    if (task == nullptr || !task->read_ahead) return;
    thread_ = std::jthread([this, task](const std::stop_token& stop) {
      try {
        task->read_ahead(stop);
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
  }

  // Rethrows its error. Not called if the work itself failed.
  void finish() {
    thread_ = {};  // stops and joins
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
  std::jthread thread_;
};

// next: the following task, whose input is prefetched.
TaskOutcome run_in(Ledger& ledger, const Context& context, const Task& task, const Task* next = nullptr) {
  switch (ledger.status(task)) {
    case Ledger::Status::done: return TaskOutcome::done_before;
    case Ledger::Status::not_needed: return TaskOutcome::not_needed;
    case Ledger::Status::to_do: break;
  }
  ledger.require_inputs(task);
  context.state().cancel.check();
  const DefaultFloatEnvironment environment;
  ReadAhead reading(next);
  task.work(context.without_progress());
  ledger.record(task);
  reading.finish();
  return TaskOutcome::done;
}

// Whether both paths name the same file, also through links.
bool is_output(const Plan::State& state, const std::filesystem::path& file) {
  std::error_code missing;
  return file == state.output || std::filesystem::equivalent(file, state.output, missing);
}

}  // namespace

bool Plan::is_done(std::string_view task) const {
  const Ledger ledger(*state_);
  return ledger.status(ledger.find(task)) != Ledger::Status::to_do;
}

TaskOutcome Plan::run_task(const Context& context, std::string_view task) const {
  check_context(*state_, context);
  const FileLock lock(lock_in(state_->folder), FileLock::Mode::shared);
  const Task& wanted = state_->graph->find(task);
  TaskOutcome outcome = TaskOutcome::done_before;
  try {
    Ledger ledger(*state_);
    outcome = run_in(ledger, context, wanted);
  } catch (const Error& error) {
    // A worker presumed dead may have finished the task in the meantime, after which its inputs or its output
    // may have been deleted.
    if (error.code() != ErrorCode::not_found || Ledger(*state_).status(wanted) != Ledger::Status::done) throw;
  }
  // Reads the records again: the last reader of a temporary output deletes it.
  if (outcome != TaskOutcome::not_needed) Ledger(*state_).remove_consumed(wanted);
  return outcome;
}

void Plan::run(const Context& context,
               const std::function<void(const PlannedTask&, TaskOutcome)>& on_task) const {
  check_context(*state_, context);
  const FileLock lock(lock_in(state_->folder), FileLock::Mode::exclusive);
  Ledger ledger(*state_);
  // After publication the intermediate files may be deleted.
  if (ledger.status(state_->tasks.back()) == Ledger::Status::done) {
    if (on_task) on_task(state_->planned.back(), TaskOutcome::done_before);
    return;
  }
  const auto weight = [](const Task& task) {
    return static_cast<std::uint64_t>(std::ceil(task.planned.seconds * 1000)) + 1;
  };
  std::uint64_t total = 0;
  for (const Task& task : state_->tasks) total += task.planned.if_needed ? 0 : weight(task);
  const Context::State& state = context.state();
  ProgressMeter progress(state.options.progress, state.clock, "plan", total);
  for (std::size_t i = 0; i < state_->tasks.size(); ++i) {
    const Task& task = state_->tasks[i];
    const TaskOutcome outcome =
        run_in(ledger, context, task, i + 1 < state_->tasks.size() ? &state_->tasks[i + 1] : nullptr);
    ledger.remove_consumed(task);
    if (on_task) on_task(task.planned, outcome);
    if (!task.planned.if_needed) progress.add(weight(task));
  }
  progress.finish();
}

std::uint64_t Plan::remove_work() const {
  // Does not create a folder.
  std::error_code error;
  if (!std::filesystem::exists(state_->folder, error) && !error) return 0;
  const FileLock lock(lock_in(state_->folder), FileLock::Mode::exclusive);
  // Decided by the records and the published file, so that an interrupted removal can resume.
  if (Ledger(*state_).status(state_->tasks.back()) != Ledger::Status::done) return 0;
  std::uint64_t removed = 0;
  for (const Task& task : state_->tasks) {
    if (is_output(*state_, task.output)) continue;
    const std::uint64_t bytes = std::filesystem::file_size(task.output, error);
    if (error) continue;  // not needed, or removed before
    if (!std::filesystem::remove(task.output, error) && error)
      fail_file(ErrorCode::io, "remove", task.output, error.value());
    removed += bytes;
  }
  return removed;
}

}  // namespace nearwise
