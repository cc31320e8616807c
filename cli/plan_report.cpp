#include "cli/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

// "build" of "build-0-0003", in the first pass.
std::string kind_of(const PlannedTask& task) { return task.name.substr(0, task.name.find('-')); }

struct Stage {
  std::string kind;
  std::size_t tasks = 0;
  PlannedTask sum;  // memory: of the largest
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
  const bool goes_on =
      std::ranges::any_of(plan.tasks(), [](const PlannedTask& task) { return task.if_needed; });
  if (goes_on)
    text += "A further pass of the same size, from train on, is made where the recall is not reached.\n";
  return text;
}

Json json_of(const Plan& plan) {
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
          {"disk_bytes", plan.disk_bytes()},
          {"seconds", plan.seconds()},
          {"tasks", tasks}};
}

}  // namespace

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void tell_plan(const Session& session, const Plan& plan) {
  if (session.json)
    print(json_of(plan));
  else
    print(table_of(plan));
}

void TaskLog::note(const PlannedTask& task, TaskOutcome outcome) {
  ++counts_[static_cast<std::size_t>(outcome)];
  if (outcome == TaskOutcome::done) {
    bar_.finish();
    remark(session_, fmt::format("{}: {:.3g} s", task.name, seconds_since(since_)));
  }
  since_ = Clock::now();
}

void run_tasks(Session& session, const Plan& plan, const Context& context, TaskLog& log) {
  const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
  blame_data([&] {
    if (!plan.is_done(plan.tasks().back().name)) plan.check_disk();
    plan.run(context, [&](const PlannedTask& task, TaskOutcome outcome) { log.note(task, outcome); });
    return 0;
  });
}

void add_keep_work(CLI::App& command, bool& keep_work, CLI::Option* work) {
  command
      .add_flag("--keep-work", keep_work,
                "Leave the files of the work folder where they are when the result is there")
      ->needs(work);
}

std::string remove_work(const Plan& plan, const std::filesystem::path& work, bool keep) {
  if (keep) return fmt::format("{} is no longer needed", work.string());
  plan.remove_work();
  return fmt::format("the files of {} are removed", work.string());
}

}  // namespace nearwise::cli
