// Builds k-NN graphs to target recalls, and optionally merges, extends and shrinks them.
//
//   graph [--degree K,...] [--percent R,...] [--exact 1] [--merge 1] [--added N,...] [--removed N,...]
//
// Percent: target recalls. Merged graphs are those of two halves, the rows with even and with odd numbers;
// added rows are the last ones, removed rows are evenly spaced. Output: one JSON object per graph; `measured`
// is the recall on a second sample, drawn with another seed.
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

bench::OwnedRows copy_rows(const RowsView& rows, const std::vector<std::size_t>& numbers) {
  bench::OwnedRows copy(rows.type(), numbers.size(), rows.dim());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    std::memcpy(copy.row(i).data(), rows.row(numbers[i]), copy.row(i).size());
  return copy;
}

std::vector<std::size_t> even_then_odd(std::size_t rows) {
  std::vector<std::size_t> numbers;
  for (std::size_t first : {0, 1})
    for (std::size_t row = first; row < rows; row += 2) numbers.push_back(row);
  return numbers;
}

nlohmann::json to_json(const RecallEstimate& recall) {
  return {{"value", recall.value}, {"low", recall.low}, {"high", recall.high}, {"rows", recall.rows}};
}

// Graphs of one degree and target recall.
class Graphs {
 public:
  Graphs(const bench::Options& options, std::size_t degree, double recall)
      : context_(options.context()),
        judge_(options.context(1)),
        options_{.degree = degree, .metric = options.metric(), .target_recall = recall} {}

  KnnGraph build(const RowsView& rows) const { return build_knn_graph(context_, rows, options_); }

  // Prints what `work` builds of `rows`.
  KnnGraph measure(const std::string& what, const RowsView& rows, const auto& work) const {
    KnnGraph graph;
    const bench::Times times = bench::timed([&] { graph = work(); });
    graph.validate();
    nlohmann::json rounds = nlohmann::json::array();
    for (const GraphRound& round : graph.report.rounds)
      rounds.push_back({{"updates", round.updates}, {"recall", round.recall.value}});
    nlohmann::json report = bench::shape_of(rows, context_);
    report.update({{"what", what},
                   {"metric", name(options_.metric)},
                   {"degree", options_.degree},
                   {"target_recall", options_.target_recall},
                   {"reached", graph.report.reached},
                   {"method", name(graph.report.method)},
                   {"recall", to_json(graph.report.recall)},
                   {"measured", to_json(measure_recall(judge_, rows, graph.neighbors, options_.metric))},
                   {"rounds", rounds},
                   {"seconds", times.seconds},
                   {"cpu_seconds", times.cpu_seconds}});
    bench::print(report);
    return graph;
  }

  void merge(const RowsView& rows) const {
    const bench::OwnedRows copy = copy_rows(rows, even_then_odd(rows.rows()));
    const RowsView halves = copy;
    const std::size_t left = (rows.rows() + 1) / 2;
    const KnnGraph even = build(halves.slice(0, left));
    const KnnGraph odd = build(halves.slice(left, rows.rows() - left));
    measure("merged", halves, [&] {
      return merge_knn_graphs(context_, halves, even, odd, {.target_recall = options_.target_recall});
    });
  }

  void add(const RowsView& rows, std::size_t added) const {
    const KnnGraph before = build(rows.slice(0, rows.rows() - added));
    measure(fmt::format("{} added", added), rows, [&] {
      return add_to_knn_graph(context_, rows, before, {.target_recall = options_.target_recall});
    });
  }

  void remove(const RowsView& rows, const KnnGraph& graph, std::size_t removed) const {
    std::vector<Id> ids(removed);
    for (std::size_t i = 0; i < removed; ++i) ids[i] = static_cast<Id>(i * rows.rows() / removed);
    std::vector<std::size_t> kept;
    for (std::size_t row = 0, next = 0; row < rows.rows(); ++row) {
      if (next < removed && static_cast<std::size_t>(ids[next]) == row)
        ++next;
      else
        kept.push_back(row);
    }
    const bench::OwnedRows remaining = copy_rows(rows, kept);
    measure(fmt::format("{} removed", removed), remaining, [&] {
      return remove_from_knn_graph(context_, rows, graph, ids, {.target_recall = options_.target_recall});
    });
  }

 private:
  Context context_;
  Context judge_;  // of the second sample
  KnnGraphOptions options_;
};

void run(const bench::Options& options) {
  const bench::OwnedRows owned = bench::load_rows(options);
  const RowsView rows = owned;
  for (const std::size_t degree : options.numbers("degree", "10")) {
    for (const std::size_t percent : options.numbers("percent", "90,95,99")) {
      const Graphs graphs(options, degree, static_cast<double>(percent) / 100);
      const KnnGraph graph = graphs.measure("built", rows, [&] { return graphs.build(rows); });
      if (options.number("merge", 0) != 0) graphs.merge(rows);
      for (const std::size_t added : options.numbers("added", "0"))
        if (added != 0) graphs.add(rows, added);
      for (const std::size_t removed : options.numbers("removed", "0"))
        if (removed != 0) graphs.remove(rows, graph, removed);
    }
    if (options.number("exact", 0) != 0) {
      const Context context = options.context();
      const bench::Times times =
          bench::timed([&] { exact_knn_graph(context, rows, degree, {.metric = options.metric()}); });
      bench::print({{"what", "exact"},
                    {"degree", degree},
                    {"seconds", times.seconds},
                    {"cpu_seconds", times.cpu_seconds}});
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  return nearwise::bench::run_program(count, arguments,
                                      {"degree", "percent", "exact", "merge", "added", "removed"}, run);
}
