// Runs tasks in this process, one after the other; each uses all threads and memory of the context. A task
// that finds an input damaged or lost has it made again.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "core/check.h"
#include "core/float_environment.h"
#include "core/start_thread.h"
#include "io/files/file_calls.h"
#include "io/files/file_error.h"
#include "nearwise/plan.h"
#include "plan/engine/file_lock.h"
#include "plan/engine/ledger.h"
#include "plan/engine/plan_input.h"
#include "plan/engine/work_folder.h"

namespace nearwise {
namespace {

using plan::FileLock;
using plan::Ledger;
using plan::make_work_folder;
using plan::sweep_temporaries;
using plan::Task;

void check_context(const Plan::State& state, const Context& context) {
  require(context.seed() == state.seed, "plan: it was made with seed {}, got a context with seed {}",
          state.seed, context.seed());
  require(context.memory_limit() == 0 || context.memory_limit() >= state.memory_limit,
          "plan: it was made for {} bytes of memory, got a context with {}", state.memory_limit,
          context.memory_limit());
}

bool is_input(const Task& task) { return task.planned.name == plan::input_name; }

plan::PlanInput input_of(const Plan::State& state, const Context& context) {
  return {context, {.vectors = state.vectors, .work = state.folder, .output = state.output}};
}

// Reads all of the vector file if its size, inode or times are not those of the last check, so that a change
// is found before hours of work. A change that keeps them is found by the tasks that read it.
void check_input(const Plan::State& state, const Context& context, Ledger& ledger) {
  const Task& input = state.tasks.front();
  if (!is_input(input) || !ledger.is_intact(input)) return;
  const std::string stamp = plan::stamp_of(state.vectors);
  if (ledger.input_stamp() == stamp) return;
  input_of(state, context).all();
  ledger.record_input(stamp);
}

// Expected durations, for the shares of progress.
constexpr double seconds_of_any_task = 0.01;  // its file and its record are synced
constexpr double written_bytes_per_second = 1e9;
constexpr double verified_bytes_per_second = 2e9;

double seconds_of(const Task& task) {
  return seconds_of_any_task + task.planned.seconds +
         static_cast<double>(task.planned.written_bytes) / written_bytes_per_second;
}

// For each task from `first` on: the expected seconds of all later ones. Those that are done, or not known to
// be needed, take none; the last is not done.
std::vector<double> seconds_after(const Plan::State& state, const Ledger& ledger, std::size_t first) {
  const std::vector<Task>& tasks = state.tasks;
  std::vector<double> after(tasks.size(), 0);
  double sum = seconds_of(tasks.back());
  for (std::size_t i = tasks.size() - 1; i-- > first;) {
    after[i] = sum;
    const bool is_decided = !tasks[i].needed || ledger.is_recorded(tasks[i].decided_by);
    if (is_decided && ledger.status(tasks[i]) == Ledger::Status::to_do) sum += seconds_of(tasks[i]);
  }
  return after;
}

// Prefetches the input of the next task while the current one works.
class ReadAhead {
 public:
  explicit ReadAhead(const Task* task) {
    if (task == nullptr || !task->read_ahead) return;
    thread_ = start_thread("the one that reads ahead", [this, task](const std::stop_token& stop) {
      try {
        task->read_ahead(stop);
      } catch (const Error&) {
        // The file is damaged or lost: the task that reads it has it made again, or reports it.
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

// Runs a task, after making damaged or lost inputs again.
class Runner {
 public:
  using Report = std::function<void(const PlannedTask&, TaskOutcome)>;

  // on_repair: called for outputs that were made again.
  Runner(const Plan::State& state, const Context& context, Ledger& ledger, Stages& stages,
         Report on_repair = {})
      : state_(state),
        context_(context),
        ledger_(ledger),
        stages_(stages),
        on_repair_(std::move(on_repair)) {}

  // rest: the expected seconds of all later tasks. next: the following one, whose input is prefetched.
  TaskOutcome run(const Task& task, double rest, const Task* next) {
    rest_ = rest;
    const TaskOutcome outcome = run_if_due(task, next);
    // Not before: until then a file whose readers all seem done may be wanted for a repair.
    repairing_.reset();
    for (const Task* const made : repaired_) ledger_.remove_consumed(*made);
    repaired_.clear();
    return outcome;
  }

 private:
  // An output that is damaged again right after it was made: the disk or the memory is at fault.
  static constexpr int max_attempts = 3;

  enum class Reason : std::uint8_t { to_do, damaged };

  TaskOutcome run_if_due(const Task& task, const Task* next) {
    // A damaged decision cannot tell whether the task is needed.
    if (task.needed) repair(ledger_.find(task.decided_by));
    switch (ledger_.status(task)) {
      case Ledger::Status::done: ledger_.sync(); return TaskOutcome::done_before;
      case Ledger::Status::not_needed: return TaskOutcome::not_needed;
      case Ledger::Status::to_do: break;
    }
    ledger_.require_inputs(task);
    return make(task, Reason::to_do, next);
  }

  TaskOutcome make(const Task& task, Reason reason, const Task* next = nullptr) {
    const bool is_result = &task == &state_.tasks.back();
    const double verified = is_result ? static_cast<double>(task.planned.written_bytes) : 0;
    for (int attempt = 1;; ++attempt) {
      bool is_written = false;
      try {
        context_.state().cancel.check();
        const DefaultFloatEnvironment environment;
        const CancellationScope cancellation(context_);  // of files
        ReadAhead reading(next);
        const std::string stamp = plan::stamp_of(state_.vectors);
        task.work(stages_.next(seconds_of(task), rest_ + verified / verified_bytes_per_second));
        if (plan::stamp_of(state_.vectors) != stamp) check_changed_input(task);
        is_written = true;
        ledger_.record(task);
        if (is_input(task)) ledger_.record_input(stamp);
        reading.finish();
        return TaskOutcome::done;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::not_found) throw;
        // A worker presumed dead may have finished the task in the meantime, after which its inputs or its
        // output may have been deleted.
        if (reason == Reason::to_do && is_done_by_now(task)) return TaskOutcome::done_before;
        if (attempt == max_attempts) throw;
        stages_.abandon();
        rest_ += seconds_of(task);  // after the repairs it runs again
        // A result that is damaged already is written again. With nothing to repair, another worker may have
        // repaired what was missing when this one opened it.
        const bool may_succeed = is_written ? is_result : repair_inputs(task) || attempt == 1;
        if (!may_succeed) throw;
        rest_ -= seconds_of(task);
      }
    }
  }

  bool is_done_by_now(const Task& task) const {
    const Ledger now(state_);
    if (now.status(task) != Ledger::Status::done) return false;
    now.sync();
    return true;
  }

  // For a vector file that was touched while a task read it.
  void check_changed_input(const Task& task) const {
    require(!is_input(task), "plan: {} has changed while it was read: run again", state_.vectors.native());
    if (is_input(state_.tasks.front())) input_of(state_, context_).all();
  }

  // Whether any input was made again.
  bool repair_inputs(const Task& task) {
    bool repaired = false;
    for (const std::string& name : task.planned.after)
      if (repair(ledger_.find(name))) repaired = true;
    if (repaired) return true;
    // It may also read what its inputs were made of.
    for (const Task& earlier : state_.tasks) {
      if (&earlier == &task) break;
      const bool deleted = earlier.is_temporary && !std::filesystem::exists(earlier.output);
      if (!deleted && repair(earlier)) repaired = true;
    }
    return repaired;
  }

  // The damaged file stays until the new one replaces it: other workers may read its intact part.
  bool repair(const Task& task) {
    const std::uint64_t before = ledger_.output_of(task);
    if (before == 0 || ledger_.is_intact(task)) return false;
    if (!repairing_) repairing_.emplace(state_.repair_lock(), FileLock::Mode::wait_shared);
    make(task, Reason::damaged);
    // Tasks are deterministic, and other tasks have read the earlier output.
    require(ledger_.output_of(task) == before,
            "plan: {} was lost, and {}: run again to make anew what depends on it", task.output.native(),
            is_input(task) ? state_.vectors.native() + " has changed since it was made"
                           : "made again it differs");
    repaired_.push_back(&task);
    if (on_repair_) on_repair_(task.planned, TaskOutcome::repaired);
    return true;
  }

  const Plan::State& state_;
  const Context& context_;
  Ledger& ledger_;
  Stages& stages_;
  Report on_repair_;
  double rest_ = 0;  // expected seconds of the tasks after the one at work
  std::vector<const Task*> repaired_;
  std::optional<FileLock> repairing_;
};

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
  const FileLock lock(make_work_folder(*state_) / "lock", FileLock::Mode::shared);
  const Task& wanted = state_->graph->find(task);
  Ledger ledger(*state_);
  check_input(*state_, context, ledger);
  Stages stages(context, "plan");
  const TaskOutcome outcome = Runner(*state_, context, ledger, stages).run(wanted, 0, nullptr);
  // Reads the records again: the last reader of a temporary output deletes it.
  if (outcome != TaskOutcome::not_needed) Ledger(*state_).remove_consumed(wanted);
  stages.finish();
  return outcome;
}

void Plan::run(const Context& context,
               const std::function<void(const PlannedTask&, TaskOutcome)>& on_task) const {
  check_context(*state_, context);
  const FileLock lock(make_work_folder(*state_) / "lock", FileLock::Mode::exclusive);
  Ledger ledger(*state_);
  check_input(*state_, context, ledger);
  // After publication the intermediate files may be deleted.
  if (ledger.status(state_->tasks.back()) == Ledger::Status::done) {
    ledger.sync();
    sweep_temporaries(*state_);
    if (on_task) on_task(state_->planned.back(), TaskOutcome::done_before);
    return;
  }
  const std::vector<Task>& tasks = state_->tasks;
  std::vector<double> rest = seconds_after(*state_, ledger, 0);
  Stages stages(context, "plan");
  Runner runner(*state_, context, ledger, stages, on_task);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    // Where a pass begins, it is decided whether it is needed.
    if (i != 0 && tasks[i].decided_by != tasks[i - 1].decided_by) rest = seconds_after(*state_, ledger, i);
    const TaskOutcome outcome = runner.run(tasks[i], rest[i], i + 1 < tasks.size() ? &tasks[i + 1] : nullptr);
    ledger.remove_consumed(tasks[i]);
    if (on_task) on_task(tasks[i].planned, outcome);
  }
  sweep_temporaries(*state_);
  stages.finish();
}

std::uint64_t Plan::remove_work() const {
  // Does not create a folder.
  std::error_code error;
  if (!std::filesystem::exists(state_->folder, error) && !error) return 0;
  const FileLock lock(make_work_folder(*state_) / "lock", FileLock::Mode::exclusive);
  // Decided by the records and the published file, so that an interrupted removal can resume.
  const Ledger ledger(*state_);
  if (ledger.status(state_->tasks.back()) != Ledger::Status::done) return 0;
  ledger.sync();
  std::uint64_t removed = 0;
  for (const Task& task : state_->tasks) {
    // The checksums of the vectors stay: a later run tells by them whether the result is still theirs.
    if (is_output(*state_, task.output) || is_input(task)) continue;
    const std::uint64_t bytes = std::filesystem::file_size(task.output, error);
    if (error) continue;  // not needed, or removed before
    if (file_calls().unlink(task.output.c_str()) != 0 && errno != ENOENT)
      fail_file(ErrorCode::io, "remove", task.output, errno);
    removed += bytes;
  }
  sweep_temporaries(*state_);
  return removed;
}

}  // namespace nearwise
