// Changing k-NN graphs beside building them anew: two halves merged, rows added, rows removed.
//
//   graph_change [--rows N] [--dim D] [--data uniform|normal|clusters|offset] [--base FILE] [--type T] [--metric M]
//                [--degree K] [--percent R,...] [--threads T] [--isa NAME] [--seed S] [--added N,...] [--removed N,...]
//                [--merge 0] [--whole 0] [--overlap O,... --partition-rows C,... --list L,...]
//
// Percent: recalls asked for. Halves are the rows of even and odd numbers, added rows the last ones, removed ones spread
// evenly. --whole 0: without the build of all rows to compare with. --overlap, --partition-rows, --list: merges with such cells and lists. Output:
// one JSON object per change; `measured` is the recall on a second sample, drawn by another seed.
#include <fmt/format.h>

#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/change/change.h"
#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

// Rows with even numbers, then those with odd ones: halves that are alike.
struct Halves {
  Matrix<std::byte> bytes;
  RowsView rows;
  std::size_t left = 0;
};

Halves load_halves(const bench::Options& options, ElementType type) {
  const auto load = [&] {
    if (!options.has("base")) return std::move(bench::generated(options, type).base);
    const VectorFile file = VectorFile::open(options.text("base", ""));
    const std::size_t rows = std::min(file.rows().rows(), options.number("rows", SIZE_MAX));
    return bench::converted(file.rows().slice(0, rows), type);
  };
  const bench::OwnedRows owned = load();
  const RowsView given = owned;
  const std::size_t row_bytes = given.dim() * element_size(type);
  Halves halves{
      .bytes = Matrix<std::byte>(given.rows(), row_bytes), .rows = {}, .left = (given.rows() + 1) / 2};
  for (std::size_t row = 0; row < given.rows(); ++row)
    std::memcpy(halves.bytes.row(row % 2 == 0 ? row / 2 : halves.left + row / 2).data(), given.row(row),
                row_bytes);
  halves.rows = RowsView(halves.bytes.data(), type, given.rows(), given.dim(), row_bytes);
  return halves;
}

struct Timed {
  KnnGraph graph;
  double seconds = 0;
  double cpu_seconds = 0;
};

Timed timed(const auto& work) {
  Timed timed;
  const std::clock_t before = std::clock();
  timed.seconds = bench::seconds([&] { timed.graph = work(); });
  timed.cpu_seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  return timed;
}

nlohmann::json to_json(const RecallEstimate& recall) {
  return {{"value", recall.value}, {"low", recall.low}, {"high", recall.high}, {"rows", recall.rows}};
}

class Bench {
 public:
  Bench(const bench::Options& options, const RowsView& rows)
      : rows_(rows),
        degree_(options.number("degree", 10)),
        metric_(parse_metric(options.text("metric", "sqeuclidean"))),
        context_(context(options, 0)),
        judge_(context(options, 1)) {}

  Timed build(const RowsView& rows, double recall) const {
    return timed([&] {
      return build_knn_graph(context_, rows, {.degree = degree_, .metric = metric_, .target_recall = recall});
    });
  }

  const Context& context() const { return context_; }
  std::size_t degree() const { return degree_; }

  void print(const std::string& what, double recall, const RowsView& rows, const Timed& done,
             nlohmann::json more = nlohmann::json::object()) const {
    done.graph.validate();
    nlohmann::json rounds = nlohmann::json::array();
    for (const GraphRound& round : done.graph.report.rounds)
      rounds.push_back({{"updates", round.updates}, {"recall", round.recall.value}});
    more.update({{"what", what},
                 {"version", version()},
                 {"rows", rows.rows()},
                 {"dim", rows.dim()},
                 {"type", name(rows.type())},
                 {"metric", name(metric_)},
                 {"degree", degree_},
                 {"threads", context_.threads()},
                 {"isa", context_.isa()},
                 {"recall_wanted", recall},
                 {"reached", done.graph.report.reached},
                 {"method", name(done.graph.report.method)},
                 {"recall", to_json(done.graph.report.recall)},
                 {"measured", to_json(measure_recall(judge_, rows, done.graph.neighbors, metric_))},
                 {"rounds", rounds},
                 {"seconds", done.seconds},
                 {"cpu_seconds", done.cpu_seconds}});
    fmt::print("{}\n", more.dump());
    std::fflush(stdout);
  }

 private:
  static Context context(const bench::Options& options, std::size_t more_seed) {
    return Context::cpu({.threads = static_cast<int>(options.number("threads", 0)),
                         .seed = options.number("seed", 0) + more_seed,
                         .isa = options.text("isa", "")});
  }

  RowsView rows_;
  std::size_t degree_;
  Metric metric_;
  Context context_;
  Context judge_;
};

void run_merges(const bench::Options& options, const Bench& bench, const Halves& halves, double recall) {
  const Timed left = bench.build(halves.rows.slice(0, halves.left), recall);
  bench.print("left half", recall, halves.rows.slice(0, halves.left), left);
  const Timed right = bench.build(halves.rows.slice(halves.left, halves.rows.rows() - halves.left), recall);
  const graph::Tuning defaults = graph::change_tuning(bench.degree(), recall);
  const std::vector<std::size_t> overlaps = options.numbers("overlap", std::to_string(defaults.overlap));
  const std::vector<std::size_t> partition_rows =
      options.numbers("partition-rows", std::to_string(defaults.partition_rows));
  const std::vector<std::size_t> lists = options.numbers("list", std::to_string(defaults.list));
  for (std::size_t i = 0; i < overlaps.size(); ++i) {
    graph::Tuning tuning = defaults;
    tuning.overlap = overlaps[i];
    tuning.partition_rows = partition_rows.at(std::min(i, partition_rows.size() - 1));
    tuning.list = lists.at(std::min(i, lists.size() - 1));
    const Timed merged = timed([&] {
      return graph::merge(bench.context(), halves.rows, left.graph, right.graph, {.target_recall = recall},
                          tuning);
    });
    bench.print(
        "merged", recall, halves.rows, merged,
        {{"overlap", tuning.overlap}, {"partition_rows", tuning.partition_rows}, {"list", tuning.list}});
  }
}

void run_additions(const Bench& bench, const RowsView& rows, std::size_t added, double recall) {
  const Timed before = bench.build(rows.slice(0, rows.rows() - added), recall);
  bench.print("added", recall, rows, timed([&] {
                return add_to_knn_graph(bench.context(), rows, before.graph, {.target_recall = recall});
              }),
              {{"added", added}});
}

void run_removals(const Bench& bench, const RowsView& rows, const Timed& whole, std::size_t removed,
                  double recall) {
  std::vector<Id> ids(removed);
  for (std::size_t i = 0; i < removed; ++i) ids[i] = static_cast<Id>(i * rows.rows() / removed);
  Matrix<std::byte> kept(rows.rows() - removed, rows.dim() * element_size(rows.type()));
  std::size_t next = 0;
  std::size_t count = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (next < removed && static_cast<std::size_t>(ids[next]) == row)
      ++next;
    else
      std::memcpy(kept.row(count++).data(), rows.row(row), kept.cols());
  }
  bench.print(
      "removed", recall, RowsView(kept.data(), rows.type(), kept.rows(), rows.dim(), kept.cols()), timed([&] {
        return remove_from_knn_graph(bench.context(), rows, whole.graph, ids, {.target_recall = recall});
      }),
      {{"removed", removed}});
}

}  // namespace

int main(int count, char** arguments) try {
  const bench::Options options(
      count, arguments,
      {"rows", "dim", "data", "base", "type", "metric", "degree", "percent", "threads", "isa", "seed",
       "queries", "added", "removed", "whole", "overlap", "partition-rows", "list", "merge"});
  const Halves halves = load_halves(options, parse_element_type(options.text("type", "f32")));
  const Bench bench(options, halves.rows);
  for (const std::size_t percent : options.numbers("percent", "95,99")) {
    const double recall = static_cast<double>(percent) / 100;
    Timed whole;
    if (options.number("whole", 1) != 0 || options.has("removed")) {
      whole = bench.build(halves.rows, recall);
      bench.print("whole", recall, halves.rows, whole);
    }
    if (options.number("merge", 1) != 0) run_merges(options, bench, halves, recall);
    if (options.has("added"))
      for (const std::size_t added : options.numbers("added", ""))
        run_additions(bench, halves.rows, added, recall);
    if (options.has("removed"))
      for (const std::size_t removed : options.numbers("removed", ""))
        run_removals(bench, halves.rows, whole, removed, recall);
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "graph_change: {}\n", error.what());
  return 1;
}
