#include "cli/graph/graph_report.h"

#include <fmt/format.h>

#include "cli/shared/files.h"
#include "nearwise/storage.h"

namespace nearwise::cli {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Json summary(const GraphRun& run, const Context& context, std::size_t dim, const KnnGraph& graph,
             double seconds) {
  Json rounds = Json::array();
  for (const GraphRound& round : graph.report.rounds)
    rounds.push_back({{"round", round.round}, {"updates", round.updates}, {"recall", to_json(round.recall)}});
  return {{"rows", graph.rows()},
          {"degree", graph.degree()},
          {"dim", dim},
          {"metric", name(graph.metric)},
          {"method", name(graph.report.method)},
          {"recall", to_json(graph.report.recall)},
          {"recall_wanted", run.recall},
          {"reached", graph.report.reached},
          {"rounds", rounds},
          {"seconds", seconds},
          {"output", run.output.string()},
          {"seed", run.seed},
          {"device", run.machine.device},
          {"isa", context.isa()},
          {"threads", context.threads()},
          {"memory_peak_bytes", context.memory_peak()}};
}

}  // namespace

Json to_json(const RecallEstimate& recall) {
  return {{"value", recall.value}, {"low", recall.low}, {"high", recall.high}, {"rows", recall.rows}};
}

std::string sentence(const RecallEstimate& recall) {
  return fmt::format("recall {:.4f}, 95 % interval {:.4f} to {:.4f}, of {} rows", recall.value, recall.low,
                     recall.high, recall.rows);
}

void check_graph_arguments(const std::string& command, double recall, const std::filesystem::path& output) {
  if (!(recall > 0 && recall <= 1))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the recall must be above 0 and at most 1, given {}", command, recall));
  if (!is_container(output))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: a graph is kept in a .nw file, given '{}'", command, output.string()));
}

KnnGraph open_graph(const std::filesystem::path& path) {
  if (!is_container(path))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}': suffix '{}' cannot hold a graph; .nw can",
                                                         path.string(), path.extension().string()));
  const std::string kind = inspect(path).kind;
  if (kind != "graph")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}': a graph expected, the file holds {}", path.string(), kind));
  return load_knn_graph(path);
}

std::function<void(const GraphRound&)> tell_rounds(const GraphRun& run, ProgressBar& bar) {
  return [&run, &bar](const GraphRound& round) {
    bar.finish();
    remark(run.session, fmt::format("round {}: {} updates, {}, {:.3g} s", round.round, round.updates,
                                    sentence(round.recall), seconds_since(run.start)));
  };
}

ExitCode finish_graph(const GraphRun& run, const Context& context, std::size_t dim, const KnnGraph& graph,
                      const Provenance& provenance, const Json& more) {
  const double seconds = seconds_since(run.start);
  const Interrupt::Protection protection = run.session.interrupt->protect();
  save(graph, run.output, provenance);
  if (run.session.json) {
    Json json = summary(run, context, dim, graph, seconds);
    json.update(more);
    print(json);
    return ExitCode::ok;
  }
  remark(run.session,
         fmt::format("wrote {} x {} to {}: {}, {}, {:.3g} s", graph.rows(), graph.degree(),
                     run.output.string(), name(graph.report.method), sentence(graph.report.recall), seconds));
  if (!graph.report.reached)
    remark(run.session, fmt::format("the recall of {} that was asked for was NOT reached", run.recall));
  return ExitCode::ok;
}

}  // namespace nearwise::cli
