#include "cli/shared/planned_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/shared/command.h"
#include "cli/shared/text.h"
#include "nearwise/machine.h"

namespace nearwise::cli {
namespace {

// "build" of "build-0-0003".
std::string kind_of(const PlannedTask& task) { return task.name.substr(0, task.name.find('-')); }

struct Stage {
  std::string kind;
  std::size_t tasks = 0;
  PlannedTask sum;  // memory_bytes: of the largest task
};

std::vector<Stage> stages_of(const Plan& plan) {
  std::vector<Stage> stages;
  for (const PlannedTask& task : plan.tasks()) {
    if (task.if_needed) continue;
    if (stages.empty() || stages.back().kind != kind_of(task)) stages.push_back({kind_of(task), 0, {}});
    Stage& stage = stages.back();
    ++stage.tasks;
    stage.sum.read_bytes += task.read_bytes;
    stage.sum.written_bytes += task.written_bytes;
    stage.sum.memory_bytes = std::max(stage.sum.memory_bytes, task.memory_bytes);
    stage.sum.seconds += task.seconds;
  }
  return stages;
}

std::string table_of(const Plan& plan) {
  std::string text = fmt::format("{:<9}{:>7}{:>12}{:>12}{:>12}{:>12}\n", "stage", "tasks", "read", "written",
                                 "memory", "seconds");
  const auto line = [&](const std::string& kind, std::size_t tasks, const PlannedTask& sum) {
    text += fmt::format("{:<9}{:>7}{:>12}{:>12}{:>12}{:>12.1f}\n", kind, tasks, format_bytes(sum.read_bytes),
                        format_bytes(sum.written_bytes), format_bytes(sum.memory_bytes), sum.seconds);
  };
  PlannedTask all;
  std::size_t tasks = 0;
  for (const Stage& stage : stages_of(plan)) {
    line(stage.kind, stage.tasks, stage.sum);
    all.read_bytes += stage.sum.read_bytes;
    tasks += stage.tasks;
  }
  all.written_bytes = plan.disk_bytes();
  all.memory_bytes = plan.memory_bytes();
  all.seconds = plan.seconds();
  line("all", tasks, all);
  const bool may_repeat =
      std::ranges::any_of(plan.tasks(), [](const PlannedTask& task) { return task.if_needed; });
  if (may_repeat)
    text += "If the target recall is not reached, a further pass of the same size follows, from train on.\n";
  return text;
}

// Free bytes of the disk of a folder that may not exist yet; none where the system does not say.
std::optional<std::uint64_t> free_bytes(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::path existing = std::filesystem::absolute(folder, failed);
  while (!std::filesystem::exists(existing, failed) && existing.has_relative_path())
    existing = existing.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(existing, failed);
  return failed ? std::nullopt : std::optional<std::uint64_t>(space.available);
}

std::string needs_of(const Plan& plan, const Context& context, const std::filesystem::path& work) {
  const std::optional<std::uint64_t> free = free_bytes(work);
  return fmt::format(
      "Needs about {} on {} threads, {} of disk in {}{}, and up to {} of memory (limit {}; {} suffice).\n",
      format_duration(plan.seconds()), context.threads(), format_bytes(plan.disk_bytes()), work.string(),
      free ? fmt::format(" ({} free)", format_bytes(*free)) : "", format_bytes(plan.memory_bytes()),
      format_bytes(context.memory_limit()), format_bytes(plan.least_memory_bytes()));
}

// How many tasks a run found in which state.
struct TaskCounts {
  std::size_t done = 0;
  std::size_t done_before = 0;
  std::size_t not_needed = 0;
  std::size_t repaired = 0;
};

Json to_json(const TaskCounts& counts) {
  return {{"done", counts.done},
          {"done_before", counts.done_before},
          {"not_needed", counts.not_needed},
          {"repaired", counts.repaired}};
}

Json json_of(const Plan& plan, const Context& context, const std::filesystem::path& work) {
  Json tasks = Json::array();
  for (const PlannedTask& task : plan.tasks())
    tasks.push_back({{"name", task.name},
                     {"after", task.after},
                     {"read_bytes", task.read_bytes},
                     {"written_bytes", task.written_bytes},
                     {"memory_bytes", task.memory_bytes},
                     {"seconds", task.seconds},
                     {"if_needed", task.if_needed}});
  return {{"memory_bytes", plan.memory_bytes()},
          {"memory_limit_bytes", context.memory_limit()},
          {"least_memory_bytes", plan.least_memory_bytes()},
          {"disk_bytes", plan.disk_bytes()},
          {"disk_free_bytes", free_bytes(work).value_or(0)},
          {"threads", context.threads()},
          {"seconds", plan.seconds()},
          {"tasks", tasks}};
}

}  // namespace

CLI::Option* add_work_options(CLI::App& parser, WorkArguments& arguments) {
  CLI::Option* const work = add_folder(
      parser, "--work", arguments.folder,
      "Build over files in this folder, for data larger than --memory-limit; after an interruption "
      "the same command resumes");
  parser
      .add_flag("--keep-work", arguments.keep,
                "Keep the files of the work folder when the result is complete")
      ->needs(work);
  return work;
}

void add_plan_options(CLI::App& parser, std::filesystem::path& output, WorkArguments& arguments,
                      const std::string& result, const std::string& run, const std::string& file) {
  arguments.folder = ".";
  add_output(parser, output, fmt::format("{} of the {} (default: {} in the work folder)", result, run, file))
      ->required(false);
  add_folder(parser, "--work", arguments.folder, fmt::format("Work folder of the {} (default: .)", run));
}

Provenance describe_planned_run(const std::string& command, const std::string& base) {
  Provenance provenance = {{"command", command}, {"version", "nearwise " + version()}, {"base", base}};
  if (const std::optional<std::string> time = fixed_time()) provenance["time"] = *time;
  return provenance;
}

ExitCode print_plan(const Session& session, const Plan& plan, const Context& context,
                    const std::filesystem::path& work, const PlanNotes& notes) {
  if (session.json) {
    Json json = json_of(plan, context, work);
    if (!notes.json.is_null()) json.update(notes.json);
    print(json);
  } else {
    print(table_of(plan) + (notes.line.empty() ? "" : notes.line + "\n") + needs_of(plan, context, work));
  }
  plan.check_disk();  // says what is missing, after what is needed
  return ExitCode::ok;
}

Json run_plan(Session& session, const Plan& plan, const Context& context, const WorkArguments& work,
              const std::function<void()>& before_removal) {
  TaskCounts counts;
  Stopwatch since;
  Work running(session, context);
  const auto note = [&](const PlannedTask& task, TaskOutcome outcome) {
    if (outcome == TaskOutcome::done_before) ++counts.done_before;
    if (outcome == TaskOutcome::not_needed) ++counts.not_needed;
    if (outcome == TaskOutcome::repaired) {
      ++counts.repaired;
      running.bar().finish();
      remark(session, fmt::format("{}: its output was damaged or lost, and was made again", task.name));
    }
    if (outcome == TaskOutcome::done) {
      ++counts.done;
      running.bar().finish();
      remark(session, fmt::format("{}: {:.3g} s", task.name, since.seconds()));
    }
    since = Stopwatch();
  };
  running.run_on_data([&](const Context& own) {
    if (!plan.is_done(plan.tasks().back().name)) plan.check_disk();
    plan.run(own, note);
  });
  if (counts.done_before != 0)
    remark(session, fmt::format("{} tasks were complete before this run", counts.done_before));
  if (before_removal) before_removal();
  if (!work.keep) plan.remove_work();
  remark(session, work.keep ? fmt::format("{} is no longer needed", work.folder.string())
                            : fmt::format("removed the intermediate files in {}", work.folder.string()));
  return {{"tasks", to_json(counts)}, {"work", work.folder.string()}};
}

}  // namespace nearwise::cli
