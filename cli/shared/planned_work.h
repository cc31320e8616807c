// Work over files: plans as tables, their tasks run and reported.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>

#include "cli/shared/files.h"
#include "cli/shared/session.h"
#include "cli/shared/work.h"
#include "nearwise/plan.h"

namespace nearwise::cli {

// --work and --keep-work of a build.
struct WorkArguments {
  std::filesystem::path folder;  // empty: build in memory
  bool keep = false;
};
CLI::Option* add_work_options(CLI::App& parser, WorkArguments& arguments);

// -o and --work of a verb of `nearwise plan`, neither required. For the help: the result ("Graph") of the run
// ("build"), and the default name of the result in the work folder.
void add_plan_options(CLI::App& parser, std::filesystem::path& output, WorkArguments& arguments,
                      const std::string& result, const std::string& run, const std::string& file);

// Provenance of a result of which `command` has only what its bytes depend on. There is a time only with
// SOURCE_DATE_EPOCH: a build that is interrupted, or runs again, must write the same bytes.
Provenance describe_planned_run(const std::string& command, const std::string& base);

// Of a plan of one kind, next to what is printed of every plan.
struct PlanNotes {
  Json json = {};
  std::string line = {};
};
// Prints a table of the stages and what is needed in all, or all tasks as JSON. Throws as Plan::check_disk()
// does, after that.
ExitCode print_plan(const Session& session, const Plan& plan, const Context& context,
                    const std::filesystem::path& work, const PlanNotes& notes = {});

// Runs the remaining tasks, with a remark for each, then deletes their files unless --keep-work is given.
// Returns the number of tasks found in each state, and the folder: `tasks` and `work` of a report. Throws
// Error(cannot_create) at the start if the disk is too small. before_removal: called while the files are
// there.
Json run_plan(Session& session, const Plan& plan, const Context& context, const WorkArguments& work,
              const std::function<void()>& before_removal = {});

}  // namespace nearwise::cli
