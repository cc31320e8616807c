// nearwise plan graph, and graph build --work, which runs the plan.
#include "cli/commands.h"
#include "cli/graph/build_options.h"
#include "cli/graph/graph_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "nearwise/machine.h"

namespace nearwise::cli {
namespace {

Plan make_plan(const Session& session, const Context& context, const GraphBuildArguments& arguments) {
  require_container(arguments.output, "a graph");
  if (arguments.context.memory_limit == 0) refuse(session, "a build over files needs --memory-limit");
  std::string described;
  {
    const VectorFile file = open_vectors(arguments.base);
    described = describe_input(arguments.base, file.rows());
  }
  // Neither time nor command: a resumed build writes the same bytes as an uninterrupted one.
  return plan_graph(context,
                    {.vectors = arguments.base, .work = arguments.work.folder, .output = arguments.output},
                    {.degree = arguments.degree,
                     .metric = arguments.metric,
                     .target_recall = arguments.target_recall,
                     .method = arguments.method.value_or(GraphPlanMethod::partitions),
                     .provenance = {{"version", "nearwise " + version()}, {"base", described}}});
}

ExitCode run_plan_graph(Session& session, const GraphBuildArguments& given) {
  GraphBuildArguments arguments = given;
  if (arguments.output.empty()) arguments.output = arguments.work.folder / "graph.nw";
  const Context context = open_context(arguments.context, arguments.seed);
  return print_plan(session, make_plan(session, context, arguments));
}

}  // namespace

ExitCode run_planned_graph_build(Session& session, const GraphBuildArguments& arguments) {
  const Stopwatch watch;
  const Context context = open_context(arguments.context, arguments.seed);
  const Plan plan = make_plan(session, context, arguments);
  const TaskCounts tasks = run_plan(session, plan, context, arguments.work);
  const GraphReport report = plan.report();
  Json json = {{"degree", arguments.degree},
               {"metric", name(arguments.metric)},
               {"method", name(arguments.method.value_or(GraphPlanMethod::partitions))}};
  json.update(describe_report(report, arguments.target_recall));
  json.update({{"seconds", watch.seconds()},
               {"tasks", to_json(tasks)},
               {"output", arguments.output.string()},
               {"work", arguments.work.folder.string()},
               {"seed", arguments.seed}});
  json.update(describe_context(context));
  conclude(session, json,
           fmt::format("wrote {}: {}, {:.3g} s", arguments.output.string(), sentence(report.recall),
                       watch.seconds()));
  warn_if_missed(session, report, arguments.target_recall);
  return ExitCode::ok;
}

void add_plan_graph(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_plan_graph, "graph", "Tasks, bytes, memory and time of graph build --work",
      "  nearwise plan graph base.fbin --memory-limit 2GiB --work /disk/work\n\n"
      "Times are estimated from a short measurement on this machine. Fails if memory or disk do not "
      "suffice.");
  arguments.work.folder = ".";
  add_graph_build_options(parser, arguments);
  add_output(parser, arguments.output, "Graph of the build (default: graph.nw in the work folder)")
      ->required(false);
  add_folder(parser, "--work", arguments.work.folder, "Work folder of the build (default: .)");
}

}  // namespace nearwise::cli
