// nearwise graph build, in memory and over files, and plan graph: the k-nearest-neighbour graph of a file.
#include <optional>

#include "cli/commands.h"
#include "cli/graph/graph_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/planned_work.h"
#include "cli/shared/text.h"
#include "nearwise/machine.h"
#include "nearwise/plan.h"

namespace nearwise::cli {
namespace {

struct BuildArguments {
  std::filesystem::path base;
  std::filesystem::path output;
  WorkArguments work;
  std::size_t degree = 10;
  Metric metric = Metric::sqeuclidean;
  double target_recall = 0.95;
  std::optional<GraphPlanMethod> method;  // of a build over files; none: partitions
  std::size_t seed = 0;
  ContextArguments context;
};

// The options that the graph depends on.
std::string command_of(const BuildArguments& arguments, GraphPlanMethod method) {
  return fmt::format(
      "nearwise graph build {} --degree {} --metric {} --target-recall {} --method {} --seed {} "
      "--memory-limit {} --work",
      quote(arguments.base.string()), arguments.degree, name(arguments.metric), arguments.target_recall,
      name(method), arguments.seed, arguments.context.memory_limit);
}

Plan make_plan(const Session& session, const Context& context, const BuildArguments& arguments) {
  require_container(arguments.output, "a graph");
  if (arguments.context.memory_limit == 0) refuse(session, "a build over files needs --memory-limit");
  std::string described;
  {
    const VectorFile file = open_vectors(arguments.base);
    described = describe_input(arguments.base, file.rows());
  }
  const GraphPlanMethod method = arguments.method.value_or(GraphPlanMethod::partitions);
  return plan_graph(context,
                    {.vectors = arguments.base, .work = arguments.work.folder, .output = arguments.output},
                    {.degree = arguments.degree,
                     .metric = arguments.metric,
                     .target_recall = arguments.target_recall,
                     .method = method,
                     .provenance = describe_planned_run(command_of(arguments, method), described)});
}

ExitCode run_plan_graph(Session& session, const BuildArguments& given) {
  BuildArguments arguments = given;
  if (arguments.output.empty()) arguments.output = arguments.work.folder / "graph.nw";
  const Context context = open_context(arguments.context, arguments.seed);
  return print_plan(session, make_plan(session, context, arguments), context, arguments.work.folder);
}

ExitCode run_planned_build(Session& session, const BuildArguments& arguments) {
  const Stopwatch watch;
  const Context context = open_context(arguments.context, arguments.seed);
  const Plan plan = make_plan(session, context, arguments);
  const Json run = run_plan(session, plan, context, arguments.work);
  const GraphReport report = plan.report();
  Json json = {{"degree", arguments.degree},
               {"metric", name(arguments.metric)},
               {"method", name(arguments.method.value_or(GraphPlanMethod::partitions))}};
  json.update(describe_report(report, arguments.target_recall));
  json.update(
      {{"seconds", watch.seconds()}, {"output", arguments.output.string()}, {"seed", arguments.seed}});
  json.update(run);
  json.update(describe_context(context));
  conclude(session, json,
           fmt::format("wrote {}: {}, {:.3g} s", arguments.output.string(), sentence(report.recall),
                       watch.seconds()));
  warn_if_missed(session, report, arguments.target_recall);
  return ExitCode::ok;
}

ExitCode run_build(Session& session, const BuildArguments& arguments) {
  require_container(arguments.output, "a graph");
  check_output(session, arguments.output, {arguments.base});
  if (!arguments.work.folder.empty()) return run_planned_build(session, arguments);
  if (arguments.method) refuse(session, "--method is for a build over files, which needs --work");
  const VectorFile file = open_vectors(arguments.base);
  const RowsView base = file.rows();
  if (base.rows() == 0) refuse(session, "'{}' has no vectors", arguments.base.string());
  Provenance provenance = describe_run(session);
  provenance["base"] = describe_input(arguments.base, base);
  const Context context = open_context(arguments.context, arguments.seed);
  return make_graph({.session = session,
                     .context = context,
                     .vectors = base,
                     .output = arguments.output,
                     .target_recall = arguments.target_recall,
                     .seed = arguments.seed,
                     .provenance = provenance},
                    [&](const Context& own, const OnRound& on_round) {
                      return build_knn_graph(own, base,
                                             {.degree = arguments.degree,
                                              .metric = arguments.metric,
                                              .target_recall = arguments.target_recall,
                                              .on_round = on_round});
                    });
}

// The base, and all options but --output and --work.
void add_build_options(CLI::App& parser, BuildArguments& arguments) {
  add_path(parser, "base", arguments.base, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_count(parser, "--degree", arguments.degree, 1, "Neighbours per vector");
  add_choice(parser, "--metric", arguments.metric, all_metrics, "Metric; inner_product: largest first");
  add_target_recall(parser, arguments.target_recall,
                    "Recall to reach, measured on a sample; 1: exact search");
  add_choice(parser, "--method", arguments.method, {GraphPlanMethod::partitions, GraphPlanMethod::pairs},
             "With --work: overlapping partitions, or merging every pair of shards as GGM does (default: "
             "partitions)");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

}  // namespace

void add_graph_build(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_build, "build", "Build the k-nearest-neighbour graph of a file",
                  "  nearwise graph build base.fbin --degree 10 --target-recall 0.95 -o graph.nw\n"
                  "  nearwise graph build base.fbin --memory-limit 2GiB --work work -o graph.nw\n\n"
                  "Iterates until the target recall is measured on a sample; every round is reported.");
  add_build_options(parser, arguments);
  add_output(parser, arguments.output, "Graph to write: .nw");
  add_work_options(parser, arguments.work);
}

void add_plan_graph(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_plan_graph, "graph", "Tasks, bytes, memory and time of graph build --work",
      "  nearwise plan graph base.fbin --memory-limit 2GiB --work /disk/work\n\n"
      "Times are estimated from a short measurement on this machine. Fails if memory or disk do not "
      "suffice.");
  add_build_options(parser, arguments);
  add_plan_options(parser, arguments.output, arguments.work, "Graph", "build", "graph.nw");
}

}  // namespace nearwise::cli
