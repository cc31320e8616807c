// How plans and their tasks are told.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "cli/shared/progress_bar.h"
#include "cli/shared/session.h"
#include "nearwise/plan.h"

namespace nearwise::cli {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start);

// A table of its stages, or all tasks as JSON.
void tell_plan(const Session& session, const Plan& plan);

// What became of the tasks, and a remark for each that was run.
class TaskLog {
 public:
  TaskLog(const Session& session, ProgressBar& bar) : session_(session), bar_(bar) {}

  void note(const PlannedTask& task, TaskOutcome outcome);
  Json json() const {
    return {{"done", counts_[0]}, {"done_before", counts_[1]}, {"not_needed", counts_[2]}};
  }
  std::size_t done_before() const { return counts_[1]; }

 private:
  const Session& session_;
  ProgressBar& bar_;
  Clock::time_point since_ = Clock::now();
  std::size_t counts_[3] = {};  // by TaskOutcome
};

// Runs all tasks, or those that are left, until done or interrupted. Refuses early where there is not room enough on the disk.
void run_tasks(Session& session, const Plan& plan, const Context& context, TaskLog& log);

// --keep-work, beside --work.
void add_keep_work(CLI::App& command, bool& keep_work, CLI::Option* work);
// Empties the work folder of a plan whose result is published, or not, and says what is left.
std::string remove_work(const Plan& plan, const std::filesystem::path& work, bool keep);

}  // namespace nearwise::cli
