// nearwise graph eval: recall of a graph, measured on a sample of its vectors.
#include <optional>

#include "cli/commands.h"
#include "cli/graph/graph_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/work.h"

namespace nearwise::cli {
namespace {

struct EvalArguments {
  std::filesystem::path graph;
  std::filesystem::path base;
  std::size_t sample = 2000;
  std::optional<Metric> metric;
  std::size_t seed = 0;
  ContextArguments context;
};

ExitCode run_eval(Session& session, const EvalArguments& arguments) {
  const VectorFile base_file = open_vectors(arguments.base);
  const RowsView base = base_file.rows();
  const NeighborFile file = read_neighbor_file(arguments.graph);
  if (file.neighbors.ids.rows() != base.rows())
    refuse(session, "graph and vectors must match, '{}' has {} rows and '{}' {} vectors",
           arguments.graph.string(), file.neighbors.ids.rows(), arguments.base.string(), base.rows());
  if (base.rows() < 2)
    refuse(session, "expected at least 2 vectors, '{}' has {}", arguments.base.string(), base.rows());
  const Metric metric = arguments.metric.value_or(file.metric.value_or(Metric::sqeuclidean));
  const Context context = open_context(arguments.context, arguments.seed);
  Work work(session, context, "vectors", arguments.sample);
  const RecallEstimate recall = work.run_on_data([&](const Context& own) {
    return measure_recall(
        own, base, file.neighbors, metric,
        arguments.sample == 0 ? std::nullopt : std::optional<std::size_t>(arguments.sample));
  });
  if (session.json)
    print(Json{{"rows", base.rows()},
               {"degree", file.neighbors.ids.cols()},
               {"metric", name(metric)},
               {"recall", to_json(recall)},
               {"graph", arguments.graph.string()},
               {"base", arguments.base.string()}});
  else
    print(sentence(recall) + "\n");
  return ExitCode::ok;
}

}  // namespace

void add_graph_eval(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_eval, "eval", "Measure the recall of a graph on a sample",
                  "  nearwise graph eval graph.nw base.fbin\n\n"
                  "Also for neighbours in other formats: .ivecs .ibin .npy .bin.");
  add_path(parser, "graph", arguments.graph, "Graph: .nw, or neighbours of every vector")->required();
  add_path(parser, "base", arguments.base, "Vectors of the graph")->required();
  add_count(parser, "--sample", arguments.sample, 0, "Vectors to compare with exact search; 0: all");
  add_choice(parser, "--metric", arguments.metric, all_metrics,
             "Metric (default: that of the file, or sqeuclidean)");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
