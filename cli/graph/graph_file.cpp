#include "cli/graph/graph_file.h"

#include <utility>

#include "cli/shared/files.h"
#include "cli/shared/work.h"

namespace nearwise::cli {

std::string sentence(const RecallEstimate& recall) {
  return fmt::format("recall {:.4f}, 95 % interval {:.4f} to {:.4f}, sample of {} vectors", recall.value,
                     recall.low, recall.high, recall.rows);
}

Json describe_report(const GraphReport& report, double target_recall) {
  Json rounds = Json::array();
  for (const GraphRound& round : report.rounds)
    rounds.push_back({{"round", round.round}, {"updates", round.updates}, {"recall", to_json(round.recall)}});
  return {{"recall", to_json(report.recall)},
          {"target_recall", target_recall},
          {"reached", report.reached},
          {"rounds", rounds}};
}

void warn_if_missed(const Session& session, const GraphReport& report, double target_recall) {
  if (!report.reached)
    remark(session, fmt::format("warning: target recall {} was not reached", target_recall));
}

KnnGraph open_graph(const std::filesystem::path& path) {
  inspect_as(path, "a graph", {"graph"});
  return load_knn_graph(path);
}

KnnGraph open_graph_or_neighbors(const std::filesystem::path& path) {
  const ContainerInfo info = inspect_as(path, "a graph", {"graph", "neighbors"});
  if (info.kind == "graph") return load_knn_graph(path);
  SavedNeighbors saved = load_neighbors(path);
  KnnGraph graph = {.neighbors = std::move(saved.neighbors), .metric = saved.metric, .report = {}};
  try {
    graph.validate();
  } catch (const Error& error) {
    throw InvalidData(fmt::format("'{}': these neighbours are not a graph: {}", path.string(), error.what()));
  }
  return graph;
}

ExitCode make_graph(const GraphRun& run,
                    const std::function<KnnGraph(const Context&, const OnRound&)>& make) {
  const Stopwatch watch;
  Work work(run.session, run.context, "vectors", run.vectors.rows());
  const OnRound on_round = [&](const GraphRound& round) {
    work.bar().finish();
    remark(run.session, fmt::format("round {}: {} updates, {}, {:.3g} s", round.round, round.updates,
                                    sentence(round.recall), watch.seconds()));
  };
  const KnnGraph graph = work.run_on_data([&](const Context& own) { return make(own, on_round); });
  const double seconds = watch.seconds();
  if (graph.rows() == 0) refuse(run.session, "the graph would have no vectors");
  const Interrupt::Protection protection = run.session.interrupt->protect();
  save(graph, run.output, run.provenance);
  Json json = {{"rows", graph.rows()},
               {"degree", graph.degree()},
               {"dim", run.vectors.dim()},
               {"metric", name(graph.metric)},
               {"method", name(graph.report.method)}};
  json.update(describe_report(graph.report, run.target_recall));
  json.update({{"seconds", seconds}, {"output", run.output.string()}, {"seed", run.seed}});
  json.update(describe_context(run.context));
  conclude(
      run.session, json,
      fmt::format("wrote {} x {} to {}: {}, {}, {:.3g} s", graph.rows(), graph.degree(), run.output.string(),
                  name(graph.report.method), sentence(graph.report.recall), seconds));
  warn_if_missed(run.session, graph.report, run.target_recall);
  return ExitCode::ok;
}

}  // namespace nearwise::cli
