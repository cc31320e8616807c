// nearwise graph: builds the graph of every row's nearest other rows, and measures one. change_graph.cpp has the changes.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "cli/graph/graph_arguments.h"
#include "cli/graph/graph_report.h"
#include "cli/graph/graph_uses.h"
#include "cli/plan_report.h"
#include "cli/shared/files.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"
#include "nearwise/knn_graph.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct EvalArguments {
  std::filesystem::path graph;
  std::filesystem::path base;
  std::size_t sample = 2000;
  std::size_t seed = 0;
  MachineArguments machine;
};

ExitCode run_build(Session& session, const GraphBuildArguments& arguments) {
  if (!arguments.work.empty()) return run_planned_build(session, arguments);
  if (!arguments.way.empty())
    throw Error(ErrorCode::invalid_argument, "graph build: --way is for work over files, which needs --work");
  check_graph_arguments("graph build", arguments.recall, arguments.output);
  check_output("graph build", arguments.output, {arguments.base});
  const VectorFile base_file = open_vectors(arguments.base);
  const RowsView base = base_file.rows();
  if (base.rows() == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("graph build: '{}' has no rows", arguments.base.string()));
  Provenance provenance = describe_run(session);
  provenance["base"] = describe_input(arguments.base, base);

  ProgressBar bar(choose_progress_style(session.quiet), "graph build", "rows", base.rows());
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const GraphRun run = {.session = session,
                        .output = arguments.output,
                        .recall = arguments.recall,
                        .seed = arguments.seed,
                        .machine = arguments.machine};
  const KnnGraphOptions options = {.degree = arguments.degree,
                                   .metric = parse_metric(arguments.metric),
                                   .target_recall = arguments.recall,
                                   .on_round = tell_rounds(run, bar)};
  KnnGraph graph;
  {
    const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
    graph = blame_data([&] { return build_knn_graph(context, base, options); });
  }
  bar.finish();
  session.interrupt->check();
  return finish_graph(run, context, base.dim(), graph, provenance);
}

ExitCode run_eval(Session& session, const EvalArguments& arguments, const std::string& metric) {
  const VectorFile base_file = open_vectors(arguments.base);
  const RowsView base = base_file.rows();
  const NeighborFile file = read_neighbor_file(arguments.graph);
  if (file.neighbors.ids.rows() != base.rows())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("graph eval: '{}' has neighbours of {} rows, '{}' has {} rows", arguments.graph.string(),
                    file.neighbors.ids.rows(), arguments.base.string(), base.rows()));
  if (base.rows() < 2)
    throw Error(ErrorCode::invalid_argument, fmt::format("graph eval: at least 2 rows expected, '{}' has {}",
                                                         arguments.base.string(), base.rows()));
  const Metric used = metric.empty() ? file.metric.value_or(Metric::sqeuclidean) : parse_metric(metric);
  ProgressBar bar(choose_progress_style(session.quiet), "graph eval", "rows", arguments.sample);
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
  const RecallEstimate recall = blame_data([&] {
    return measure_recall(context, base, file.neighbors, used,
                          arguments.sample == 0 ? std::nullopt : std::optional(arguments.sample));
  });
  bar.finish();
  session.interrupt->check();
  if (session.json)
    print(Json{{"rows", base.rows()},
               {"degree", file.neighbors.ids.cols()},
               {"metric", name(used)},
               {"recall", to_json(recall)},
               {"graph", arguments.graph.string()},
               {"base", arguments.base.string()}});
  else
    print(sentence(recall) + "\n");
  return ExitCode::ok;
}

void add_build_of_graph(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<GraphBuildArguments>();
  CLI::App* const command =
      add_command(app, session, "build", "Build the graph of every row's nearest other rows",
                  "  nearwise graph build base.fbin --degree 10 --recall 0.95 --output graph.nw\n\n"
                  "The recall is measured on a sample of rows; a round is told as it ends.");
  add_graph_options(*command, *arguments);
  add_path(*command, "-o,--output", arguments->output, "Where the graph goes: .nw")->required();
  CLI::Option* const work = add_path(
      *command, "--work", arguments->work,
      "Build over files in this folder, for vectors beyond --memory; stopped at any moment, the same "
      "command goes on");
  add_keep_work(*command, arguments->keep_work, work);
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_build(session, *arguments); };
  });
}

void add_eval_of_graph(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<EvalArguments>();
  auto metric = std::make_shared<std::string>();
  CLI::App* const command =
      add_command(app, session, "eval", "Measure the recall of a graph on a sample of its rows",
                  "  nearwise graph eval graph.nw base.fbin\n\n"
                  "Neighbours in other formats (.ivecs, .ibin, .npy, .bin) are measured as well.");
  add_path(*command, "graph", arguments->graph, "The graph: .nw, or neighbours of every row")->required();
  add_path(*command, "base", arguments->base, "The rows it was built of")->required();
  add_count(*command, "--sample", arguments->sample, 0, "Rows that are looked at; 0: all (2000)");
  add_word(*command, "--metric", *metric, parse_metric,
           "Instead of the file's (sqeuclidean where it has none)");
  add_count(*command, "--seed", arguments->seed, 0, "Of the random numbers (0)");
  add_machine_options(*command, arguments->machine);
  command->callback([&session, arguments, metric] {
    session.run = [&session, arguments, metric] { return run_eval(session, *arguments, *metric); };
  });
}

}  // namespace

void add_graph_options(CLI::App& command, GraphBuildArguments& arguments) {
  add_path(command, "base", arguments.base, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_count(command, "--degree", arguments.degree, 1, "Neighbours of each row (10)");
  add_word(command, "--metric", arguments.metric, parse_metric,
           "sqeuclidean, euclidean, inner_product (largest first) or cosine (sqeuclidean)");
  add_number(command, "--recall", arguments.recall,
             "The share of true neighbours that the graph must hold; 1: exact search (0.95)");
  add_word(command, "--way", arguments.way, parse_graph_plan_method,
           "With --work: partitions (overlapping cells) or pairs (every two shards are merged) (partitions)");
  add_count(command, "--seed", arguments.seed, 0, "Of the random numbers (0)");
  add_machine_options(command, arguments.machine);
}

void add_graph(CLI::App& app, Session& session) {
  CLI::App* const graph =
      app.add_subcommand("graph", "Build, change and measure graphs of nearest neighbours");
  graph->require_subcommand(1);
  add_build_of_graph(*graph, session);
  add_changes_of_graph(*graph, session);
  add_eval_of_graph(*graph, session);
  add_uses_of_graph(*graph, session);
}

}  // namespace nearwise::cli
