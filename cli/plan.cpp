// nearwise plan: what work over files will take, before it is begun; and graph build --work, which does it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/files.h"
#include "cli/graph_arguments.h"
#include "cli/graph_report.h"
#include "cli/text.h"
#include "nearwise/machine.h"
#include "nearwise/plan.h"

namespace nearwise::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Plan make_plan(const std::string& command, const Context& context, const GraphBuildArguments& arguments) {
  check_graph_arguments(command, arguments.recall, arguments.output);
  check_output(command, arguments.output, {arguments.base});
  if (arguments.machine.memory == 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: work over files needs --memory", command));
  std::string described;
  {
    const VectorFile file = open_vectors(arguments.base);
    described = describe_input(arguments.base, file.rows());
  }
  // Neither time nor command: whoever goes on with a build leaves the bytes of one that was never stopped.
  const GraphPlanOptions options = {
      .degree = arguments.degree,
      .metric = parse_metric(arguments.metric),
      .recall = arguments.recall,
      .provenance = {{"version", "nearwise " + version()}, {"base", described}}};
  return plan_graph(context, {.vectors = arguments.base, .work = arguments.work, .output = arguments.output},
                    options);
}

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
  return text + "A further pass of the same size, from train on, is made where the recall is not reached.\n";
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

ExitCode run_plan_graph(Session& session, const GraphBuildArguments& arguments) {
  ProgressBar bar(ProgressStyle::none, "plan graph", "rows", 0);
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const Plan plan = make_plan("plan graph", context, arguments);
  plan.check_disk();
  if (session.json)
    print(json_of(plan));
  else
    print(table_of(plan));
  return ExitCode::ok;
}

// What became of the tasks, and a remark for each that was run.
class TaskLog {
 public:
  TaskLog(const Session& session, ProgressBar& bar) : session_(session), bar_(bar) {}

  void note(const PlannedTask& task, TaskOutcome outcome) {
    ++counts_[static_cast<std::size_t>(outcome)];
    if (outcome == TaskOutcome::done) {
      bar_.finish();
      remark(session_, fmt::format("{}: {:.3g} s", task.name, seconds_since(since_)));
    }
    since_ = Clock::now();
  }
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

}  // namespace

ExitCode run_planned_build(Session& session, const GraphBuildArguments& arguments) {
  const Clock::time_point start = Clock::now();
  ProgressBar bar(choose_progress_style(session.quiet), "graph build", "ms of the plan", 0);
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const Plan plan = make_plan("graph build", context, arguments);
  plan.check_disk();
  TaskLog log(session, bar);
  {
    const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
    blame_data([&] {
      plan.run(context, [&](const PlannedTask& task, TaskOutcome outcome) { log.note(task, outcome); });
      return 0;
    });
  }
  bar.finish();
  session.interrupt->check();
  const GraphReport report = plan.report();
  if (session.json) {
    Json rounds = Json::array();
    for (const GraphRound& round : report.rounds)
      rounds.push_back(
          {{"round", round.round}, {"updates", round.updates}, {"recall", to_json(round.recall)}});
    print(Json{{"degree", arguments.degree},
               {"metric", arguments.metric},
               {"method", name(report.method)},
               {"recall", to_json(report.recall)},
               {"recall_wanted", arguments.recall},
               {"reached", report.reached},
               {"rounds", rounds},
               {"seconds", seconds_since(start)},
               {"tasks", log.json()},
               {"output", arguments.output.string()},
               {"work", arguments.work.string()},
               {"seed", arguments.seed},
               {"threads", context.threads()},
               {"memory_peak_bytes", context.memory_peak()}});
    return ExitCode::ok;
  }
  if (log.done_before() != 0)
    remark(session, fmt::format("{} tasks had been done before", log.done_before()));
  remark(session, fmt::format("wrote {}: {}, {:.3g} s; {} is no longer needed", arguments.output.string(),
                              sentence(report.recall), seconds_since(start), arguments.work.string()));
  if (!report.reached)
    remark(session, fmt::format("the recall of {} that was asked for was NOT reached", arguments.recall));
  return ExitCode::ok;
}

void add_plan(CLI::App& app, Session& session) {
  CLI::App* const plan = app.add_subcommand("plan", "What work over files will take, before it is begun");
  plan->require_subcommand(1);
  auto arguments = std::make_shared<GraphBuildArguments>();
  arguments->work = ".";
  CLI::App* const graph =
      add_command(*plan, session, "graph", "Tasks, bytes, memory and time of graph build --work",
                  "  nearwise plan graph base.fbin --memory 2GiB --work /disk/work\n\n"
                  "Times are from a search of a few milliseconds on this machine. Refused where memory or "
                  "disk will not do.");
  add_graph_options(*graph, *arguments);
  add_path(*graph, "-o,--output", arguments->output,
           "Where the graph will go: .nw (graph.nw in the work folder)");
  add_path(*graph, "--work", arguments->work, "The folder of the work (.)");
  graph->callback([&session, arguments] {
    if (arguments->output.empty()) arguments->output = arguments->work / "graph.nw";
    session.run = [&session, arguments] { return run_plan_graph(session, *arguments); };
  });
}

}  // namespace nearwise::cli
