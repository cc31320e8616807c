// Building k-NN graphs to recalls that are asked for, and the exact graph of the same rows.
//
//   graph [--rows N] [--dim D] [--data uniform|normal|clusters|offset] [--base FILE] [--type T] [--metric M]
//         [--degree K,...] [--percent R,...] [--threads T] [--isa NAME] [--seed S] [--exact 1]
//
// Percent: recalls asked for. CPU seconds are those of all threads: beside other load they say more than the clock. Output: one
// JSON object per degree and recall; `measured` is the recall on a second sample, drawn by another seed.
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

bench::OwnedRows load_rows(const bench::Options& options, ElementType type) {
  if (!options.has("base")) return std::move(bench::generated(options, type).base);
  const VectorFile file = VectorFile::open(options.text("base", ""));
  const std::size_t rows = std::min(file.rows().rows(), options.number("rows", SIZE_MAX));
  return bench::converted(file.rows().slice(0, rows), type);
}

struct Times {
  double seconds = 0;
  double cpu_seconds = 0;
};

Times timed(const auto& work) {
  const std::clock_t before = std::clock();
  Times times;
  times.seconds = bench::seconds(work);
  times.cpu_seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  return times;
}

nlohmann::json to_json(const RecallEstimate& recall) {
  return {{"value", recall.value}, {"low", recall.low}, {"high", recall.high}, {"rows", recall.rows}};
}

nlohmann::json measure(const Context& context, const Context& judge, const RowsView& rows,
                       const KnnGraphOptions& options) {
  KnnGraph graph;
  const Times times = timed([&] { graph = build_knn_graph(context, rows, options); });
  graph.validate();
  nlohmann::json rounds = nlohmann::json::array();
  for (const GraphRound& round : graph.report.rounds)
    rounds.push_back({{"updates", round.updates}, {"recall", round.recall.value}});
  return {{"version", version()},
          {"rows", rows.rows()},
          {"dim", rows.dim()},
          {"type", name(rows.type())},
          {"metric", name(options.metric)},
          {"degree", options.degree},
          {"threads", context.threads()},
          {"isa", context.isa()},
          {"recall_wanted", options.target_recall},
          {"reached", graph.report.reached},
          {"method", name(graph.report.method)},
          {"recall", to_json(graph.report.recall)},
          {"measured", to_json(measure_recall(judge, rows, graph.neighbors, options.metric))},
          {"rounds", rounds},
          {"seconds", times.seconds},
          {"cpu_seconds", times.cpu_seconds}};
}

}  // namespace

int main(int count, char** arguments) try {
  const bench::Options options(count, arguments,
                               {"rows", "dim", "data", "base", "type", "metric", "degree", "percent",
                                "threads", "isa", "seed", "exact", "queries"});
  const bench::OwnedRows rows = load_rows(options, parse_element_type(options.text("type", "f32")));
  const auto threads = static_cast<int>(options.number("threads", 0));
  const std::string isa = options.text("isa", "");
  const std::size_t seed = options.number("seed", 0);
  const Context context = Context::cpu({.threads = threads, .seed = seed, .isa = isa});
  const Context judge = Context::cpu({.threads = threads, .seed = seed + 1, .isa = isa});
  const Metric metric = parse_metric(options.text("metric", "sqeuclidean"));
  for (const std::size_t degree : options.numbers("degree", "10")) {
    for (const std::size_t percent : options.numbers("percent", "90,95,99"))
      fmt::print(
          "{}\n",
          measure(context, judge, rows,
                  {.degree = degree, .metric = metric, .target_recall = static_cast<double>(percent) / 100})
              .dump());
    if (options.number("exact", 0) != 0) {
      const Times times = timed([&] { exact_knn_graph(context, rows, degree, {.metric = metric}); });
      fmt::print("{}\n", nlohmann::json({{"degree", degree},
                                         {"exact_seconds", times.seconds},
                                         {"exact_cpu_seconds", times.cpu_seconds}})
                             .dump());
    }
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "graph: {}\n", error.what());
  return 1;
}
