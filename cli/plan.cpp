// nearwise plan: what work over files will take, before it is begun; and graph build --work, which does it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/graph/graph_arguments.h"
#include "cli/graph/graph_report.h"
#include "cli/index/index_arguments.h"
#include "cli/plan_report.h"
#include "cli/shared/files.h"
#include "nearwise/machine.h"
#include "nearwise/plan.h"

namespace nearwise::cli {
namespace {

Plan make_plan(const std::string& command, const Context& context, const GraphBuildArguments& arguments) {
  check_graph_arguments(command, arguments.recall, arguments.output);
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
      .target_recall = arguments.recall,
      .method = arguments.way.empty() ? GraphPlanMethod::partitions : parse_graph_plan_method(arguments.way),
      .provenance = {{"version", "nearwise " + version()}, {"base", described}}};
  return plan_graph(context, {.vectors = arguments.base, .work = arguments.work, .output = arguments.output},
                    options);
}

ExitCode run_plan_graph(Session& session, const GraphBuildArguments& arguments) {
  ProgressBar bar(ProgressStyle::none, "plan graph", "rows", 0);
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const Plan plan = make_plan("plan graph", context, arguments);
  plan.check_disk();
  tell_plan(session, plan);
  return ExitCode::ok;
}

}  // namespace

ExitCode run_planned_build(Session& session, const GraphBuildArguments& arguments) {
  check_output("graph build", arguments.output, {arguments.base});
  const Clock::time_point start = Clock::now();
  ProgressBar bar(choose_progress_style(session.quiet), "graph build");
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const Plan plan = make_plan("graph build", context, arguments);
  TaskLog log(session, bar);
  run_tasks(session, plan, context, log);
  bar.finish();
  session.interrupt->check();
  const std::string left = remove_work(plan, arguments.work, arguments.keep_work);
  const GraphReport report = plan.report();
  if (session.json) {
    Json rounds = Json::array();
    for (const GraphRound& round : report.rounds)
      rounds.push_back(
          {{"round", round.round}, {"updates", round.updates}, {"recall", to_json(round.recall)}});
    print(Json{{"degree", arguments.degree},
               {"metric", arguments.metric},
               {"way", arguments.way.empty() ? name(GraphPlanMethod::partitions) : arguments.way},
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
  remark(session, fmt::format("wrote {}: {}, {:.3g} s; {}", arguments.output.string(),
                              sentence(report.recall), seconds_since(start), left));
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
  add_plan_of_index(*plan, session);
}

}  // namespace nearwise::cli
