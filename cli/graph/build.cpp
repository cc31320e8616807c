// nearwise graph build: the k-nearest-neighbour graph of the vectors of a file.
#include "cli/commands.h"
#include "cli/graph/build_options.h"
#include "cli/graph/graph_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"

namespace nearwise::cli {
namespace {

ExitCode run_build(Session& session, const GraphBuildArguments& arguments) {
  require_container(arguments.output, "a graph");
  check_output(session, arguments.output, {arguments.base});
  if (!arguments.work.folder.empty()) return run_planned_graph_build(session, arguments);
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

}  // namespace

void add_graph_build_options(CLI::App& parser, GraphBuildArguments& arguments) {
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

void add_graph_build(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_build, "build", "Build the k-nearest-neighbour graph of a file",
                  "  nearwise graph build base.fbin --degree 10 --target-recall 0.95 -o graph.nw\n"
                  "  nearwise graph build base.fbin --memory-limit 2GiB --work work -o graph.nw\n\n"
                  "Iterates until the target recall is measured on a sample; every round is reported.");
  add_graph_build_options(parser, arguments);
  add_output(parser, arguments.output, "Graph to write: .nw");
  add_work_options(parser, arguments.work);
}

}  // namespace nearwise::cli
