#include "plan/simulation/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "nearwise/error.h"
#include "nearwise/storage.h"

namespace nearwise::plan::simulation {
namespace {

constexpr std::string_view somebody_else = "somebody else is at work there";
constexpr std::size_t calls_of_task = 40;  // about

template <typename... Arguments>
[[noreturn]] void violated(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw Violation(fmt::format(format, std::forward<Arguments>(arguments)...));
}

bool is_work_file(std::string_view path) { return path.ends_with(".nw"); }

}  // namespace

Tally& Tally::operator+=(const Tally& other) {
  attempts += other.attempts;
  calls += other.calls;
  kills += other.kills;
  power_losses += other.power_losses;
  damaged_files += other.damaged_files;
  duplicates += other.duplicates;
  return *this;
}

const std::string& plan_of_seed(std::uint64_t seed) {
  return SimulatedPlan::names()[seed % SimulatedPlan::names().size()];
}

Scenario::Scenario(const SimulatedPlan& plan, std::uint64_t seed, Bug bug, std::ostream* trace)
    : plan_(plan),
      draws_(seed),
      disk_(plan.root()),
      machine_(disk_, draws_,
               {.bug = bug, .trace = trace, .vectors = plan.vectors(), .contexts = plan.contexts()}) {
  disk_.make_folder("results");
  if (draws_.one_in(4)) {
    exceptions_[plan_.result()] = Bytes(1500, std::byte{'x'});
    disk_.put(plan_.result(), exceptions_[plan_.result()]);
  }
}

Tally Scenario::play() {
  const std::size_t rounds = 1 + draws_.below(4);
  for (std::size_t round = 0; round < rounds; ++round) play_round();
  complete();
  tally_.calls = machine_.calls();
  return tally_;
}

std::uint64_t Scenario::draw_last_call(std::size_t calls) {
  return kill_one_in_ != 0 && draws_.one_in(kill_one_in_) ? 1 + draws_.below(calls) : 0;
}

void Scenario::report(const PlannedTask& task, TaskOutcome outcome, const Attempt& attempt) {
  if (attempt.is_killed()) return;
  machine_.trace(fmt::format("{}: {} {}", attempt.name(), task.name, nearwise::name(outcome)));
  if (outcome == TaskOutcome::not_needed) return;
  if (!is_removed_ || task.name == plan_.last_task()) promised_.insert(task.name);
  if (task.name == plan_.last_task()) check_result();
}

void Scenario::start(Executor& executor, const std::string& task) {
  const auto& tasks = plan_.plan().tasks();
  const PlannedTask& planned = *std::ranges::find(tasks, task, &PlannedTask::name);
  const auto work = [this, &planned](const Context& context, const Attempt& attempt) {
    const TaskOutcome outcome = plan_.plan().run_task(context, planned.name);
    report(planned, outcome, attempt);
  };
  const auto attempt = machine_.start(task, work, draw_last_call(calls_of_task));
  executor.running.emplace(attempt.get(), task);
  ++tally_.attempts;
}

std::shared_ptr<Attempt> Scenario::start_run() {
  const auto work = [this](const Context& context, const Attempt& attempt) {
    plan_.plan().run(context,
                     [&](const PlannedTask& task, TaskOutcome outcome) { report(task, outcome, attempt); });
  };
  ++tally_.attempts;
  return machine_.start("run", work, draw_last_call(calls_of_task * plan_.plan().tasks().size() / 2));
}

bool Scenario::start_task(Executor& executor) {
  std::vector<std::string> ready;
  bool all_done = true;
  for (const PlannedTask& task : plan_.plan().tasks()) {
    if (executor.done.contains(task.name)) continue;
    all_done = false;
    if (std::ranges::any_of(executor.running, [&](const auto& entry) { return entry.second == task.name; }))
      continue;
    if (std::ranges::all_of(task.after, [&](const auto& name) { return executor.done.contains(name); }))
      ready.push_back(task.name);
  }
  if (ready.empty()) return !all_done;
  const std::string& task = draws_.any_of(ready);
  if (plan_.plan().is_done(task))
    executor.done.insert(task);
  else
    start(executor, task);
  return true;
}

void Scenario::start_duplicate(Executor& executor) {
  std::vector<std::string> begun(executor.done.begin(), executor.done.end());
  for (const PlannedTask& task : plan_.plan().tasks())  // not by the address of their attempts
    if (std::ranges::any_of(executor.running, [&](const auto& entry) { return entry.second == task.name; }))
      begun.push_back(task.name);
  if (begun.empty()) return;
  start(executor, draws_.any_of(begun));
  ++tally_.duplicates;
}

void Scenario::resume(const std::shared_ptr<Attempt>& attempt, Executor& executor) {
  machine_.resume(attempt);
  if (!attempt->is_finished()) return;
  const auto task = executor.running.find(attempt.get());
  if (!attempt->is_killed() && attempt->failure() == nullptr && task != executor.running.end())
    executor.done.insert(task->second);
  if (task != executor.running.end()) executor.running.erase(task);
  tally_.kills += attempt->is_killed() && !machine_.is_without_power() ? 1 : 0;
  judge(*attempt);
}

void Scenario::judge(const Attempt& attempt) const {
  if (attempt.failure() == nullptr) return;
  try {
    std::rethrow_exception(attempt.failure());
  } catch (const Violation&) {
    throw;
  } catch (const Error& error) {
    if (attempt.is_killed()) return;
    const std::string_view words = error.what();
    if (error.code() == ErrorCode::cannot_create && words.find(somebody_else) != std::string_view::npos)
      return;
    violated("{} failed: {}", attempt.name(), words);
  } catch (const std::exception& error) {
    violated("{} ended with another exception: {}", attempt.name(), error.what());
  }
}

void Scenario::play_round() {
  const std::size_t workers = 1 + draws_.below(plan_.contexts().size());
  const bool runs = draws_.one_in(2);
  const bool tasks = !runs || draws_.one_in(4);
  const std::size_t duplicate_one_in = 2 + draws_.below(20);
  kill_one_in_ = draws_.one_in(3) ? 0 : 2 + draws_.below(8);
  machine_.give_way_at_one_in(draws_.one_in(4) ? 0 : std::size_t{1} << draws_.below(6));
  switch (draws_.below(3)) {
    case 0: machine_.fail_power_after(1 + draws_.below(12 * calls_of_task)); break;
    case 1: machine_.fail_power_after_renames(1 + draws_.below(12)); break;
    default: break;
  }
  // When the executor dies; 0: not.
  std::size_t steps = draws_.one_in(2) ? 0 : 1 + draws_.below(100);
  machine_.trace(fmt::format("a round of {} workers", workers));

  Executor executor;
  bool run_has_ended = false;
  std::shared_ptr<Attempt> run;
  while (true) {
    if (machine_.can_start() && machine_.running().size() < workers) {
      if (runs && run == nullptr && !run_has_ended && (!tasks || draws_.one_in(3)))
        run = start_run();
      else if (tasks && draws_.one_in(duplicate_one_in))
        start_duplicate(executor);
      else if (tasks && !start_task(executor) && machine_.running().empty())
        break;
    }
    if (!machine_.running().empty()) {
      const std::shared_ptr<Attempt> next = draws_.any_of(machine_.running());
      resume(next, executor);
      if (next == run && next->is_finished()) {
        run_has_ended = !next->is_killed();
        run = nullptr;
      }
    } else if (!tasks && run_has_ended) {
      break;
    }
    if (machine_.is_without_power()) return lose_power();
    if (steps != 0 && --steps == 0) {
      machine_.trace("the executor dies");
      // Its attempts die with it, or go on.
      const auto attempts = machine_.running();
      for (const auto& attempt : attempts) {
        if (draws_.one_in(2)) continue;
        machine_.kill(attempt);
        ++tally_.kills;
      }
      break;
    }
  }
  machine_.keep_power();
  check_promises();
  if (!machine_.running().empty()) return;
  check_files();
  if (draws_.one_in(4)) lose_power();
  if (!draws_.one_in(3)) return;
  for (std::size_t files = 1 + draws_.below(3); files != 0; --files) damage_file();
}

void Scenario::lose_power() {
  machine_.lose_power();
  ++tally_.power_losses;
  check_files();
  check_promises();
}

void Scenario::damage_file() {
  std::vector<std::string> files;
  for (const auto& [path, content] : disk_.files())
    if (is_work_file(path) || path.ends_with("/manifest")) files.push_back(path);
  if (files.empty()) return;
  const std::string& path = draws_.any_of(files);
  Bytes content = disk_.files().at(path);
  machine_.trace("damage to " + path);
  ++tally_.damaged_files;
  promised_.clear();
  if (content.empty() || draws_.one_in(4)) {
    disk_.remove(path);
    return;
  }
  if (draws_.one_in(4))
    content.resize(draws_.below(content.size()));
  else
    content[draws_.below(content.size())] ^= static_cast<std::byte>(1 << draws_.below(8));
  disk_.put(path, content);
  exceptions_[path] = content;
}

void Scenario::finish_attempts() {
  Executor none;
  while (!machine_.running().empty()) {
    const std::shared_ptr<Attempt> next = draws_.any_of(machine_.running());
    resume(next, none);
  }
}

std::set<std::string> Scenario::run_alone() {
  std::set<std::string> made;
  const auto attempt = machine_.start("run", [&](const Context& context, const Attempt& self) {
    plan_.plan().run(context, [&](const PlannedTask& task, TaskOutcome outcome) {
      report(task, outcome, self);
      if (outcome == TaskOutcome::done || outcome == TaskOutcome::repaired) made.insert(task.name);
    });
  });
  while (!attempt->is_finished()) machine_.resume(attempt);
  if (attempt->failure() != nullptr) {
    judge(*attempt);
    violated("a run without faults found somebody else at work");
  }
  return made;
}

void Scenario::remove_work() {
  promised_ = {plan_.last_task()};
  is_removed_ = true;
  const std::uint64_t last_call = draw_last_call(calls_of_task);
  const auto attempt = machine_.start(
      "remove_work", [this](const Context&, const Attempt&) { plan_.plan().remove_work(); }, last_call);
  while (!attempt->is_finished()) machine_.resume(attempt);
  judge(*attempt);
}

void Scenario::complete() {
  kill_one_in_ = 0;
  machine_.trace("no more faults");
  finish_attempts();
  machine_.give_way_at_one_in(0);
  run_alone();
  check_result();
  check_files();
  check_promises();
  check_folder();
  const bool removes = draws_.one_in(2);
  if (removes) {
    kill_one_in_ = draws_.below(3);
    remove_work();
    if (draws_.one_in(3)) lose_power();
    kill_one_in_ = 0;
    remove_work();
    check_folder();
    for (const auto& [path, content] : disk_.files())
      if (is_work_file(path) && path != plan_.result() && path != plan_.output_of("input"))
        violated("{} is there after remove_work", path);
  }
  lose_power();
  check_result();
  if (const std::set<std::string> made = run_alone(); !made.empty())
    violated("{} was made again after the plan was done", *made.begin());
  check_result();
  check_folder();
  if (const std::string difference = disk_.difference(); !difference.empty()) violated("{}", difference);
}

void Scenario::check_files() const {
  for (const auto& [path, content] : disk_.files()) {
    if (!is_work_file(path)) continue;
    const auto expected = plan_.expected().find(path);
    if (expected != plan_.expected().end() && expected->second == content) continue;
    const auto exception = exceptions_.find(path);
    if (exception != exceptions_.end() && exception->second == content) continue;
    violated("{} has other bytes than in an undisturbed run", path);
  }
}

void Scenario::check_promises() const {
  for (const std::string& task : promised_)
    if (!plan_.plan().is_done(task)) violated("{} was reported as done and is not", task);
}

void Scenario::check_result() const {
  const auto files = disk_.files();
  const auto found = files.find(plan_.result());
  if (found == files.end() || found->second != plan_.expected().at(plan_.result()))
    violated("the result is reported as done and has other bytes than that of an undisturbed run");
  verify(plan_.root() / plan_.result());
}

void Scenario::check_folder() const {
  namespace fs = std::filesystem;
  const std::set<std::string> kept = {plan_.work() + "/manifest", plan_.work() + "/manifest.lock",
                                      plan_.work() + "/lock", plan_.work() + "/repair.lock"};
  for (const auto& [path, content] : disk_.files())
    if (!kept.contains(path) && !plan_.expected().contains(path)) violated("{} is left", path);
  const auto shared = fs::perms::group_all | fs::perms::others_all;
  const bool is_private = (fs::status(plan_.vectors()).permissions() & shared) == fs::perms::none;
  if (is_private && (fs::status(plan_.root() / plan_.work()).permissions() & shared) != fs::perms::none)
    violated("the work folder of private vectors is open to others");
}

}  // namespace nearwise::plan::simulation
