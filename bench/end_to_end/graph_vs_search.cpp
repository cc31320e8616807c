// The exact graph of k neighbours of every row, against a search with every row as a query that leaves out the row
// itself: each pair of rows needs one product, not two.
//
//   graph_vs_search [--rows N] [--dim D] [--data KIND] [--base FILE --query-file FILE] [--type T] [--k K] [--metric M]
//                   [--threads T] [--isa NAME] [--repeat R]
//
// One round is: graph, search. `ratio` is the graph's time over the search's. Answers must be equal, or the program ends
// with 1. Output: one JSON object.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "harness/command_line.h"
#include "harness/rows.h"
#include "harness/timing.h"
#include "nearwise/nearwise.h"

namespace {

using namespace nearwise;

bool equal(const Neighbors& left, const Neighbors& right) {
  const std::size_t size = left.ids.rows() * left.ids.cols();
  return left.ids.rows() == right.ids.rows() && left.ids.cols() == right.ids.cols() &&
         std::equal(left.ids.data(), left.ids.data() + size, right.ids.data()) &&
         std::equal(left.distances.data(), left.distances.data() + size, right.distances.data());
}

void run(const bench::Options& options) {
  const auto threads = static_cast<int>(options.number("threads", 2));
  const std::size_t repeat = options.number("repeat", 3);
  const std::size_t k = options.number("k", 10);
  const ElementType type = parse_element_type(options.text("type", "f32"));
  const KnnOptions graph_options = {.metric = parse_metric(options.text("metric", "sqeuclidean"))};
  KnnOptions search_options = graph_options;
  search_options.exclude_self = true;
  const bench::Data data = bench::load_data(options, type);
  const RowsView base = data.base;
  const Context context = Context::cpu({.threads = threads, .isa = options.text("isa", "")});

  const RowsView some = base.slice(0, std::min<std::size_t>(base.rows(), 20'000));
  exact_knn_graph(context, some, k, graph_options);  // warm up
  knn(context, some, some, k, search_options);
  std::vector<double> graph_seconds, search_seconds, ratios;
  for (std::size_t round = 0; round < repeat; ++round) {
    Neighbors graph;
    Neighbors found;
    graph_seconds.push_back(
        bench::seconds([&] { graph = exact_knn_graph(context, base, k, graph_options); }));
    search_seconds.push_back(bench::seconds([&] { found = knn(context, base, base, k, search_options); }));
    ratios.push_back(graph_seconds.back() / search_seconds.back());
    if (!equal(graph, found)) throw std::runtime_error("graph and search differ");
  }
  const nlohmann::json report = {{"version", version()},
                                 {"data", data.name},
                                 {"rows", base.rows()},
                                 {"dim", base.dim()},
                                 {"type", name(type)},
                                 {"metric", name(graph_options.metric)},
                                 {"k", k},
                                 {"threads", threads},
                                 {"isa", context.isa()},
                                 {"graph_seconds", graph_seconds},
                                 {"search_seconds", search_seconds},
                                 {"ratios", ratios},
                                 {"ratio", bench::median(ratios)},
                                 {"spread", bench::spread(ratios)},
                                 {"search_spread", bench::spread(search_seconds)}};
  fmt::print("{}\n", report.dump());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argc,
         argv,
         {"rows", "dim", "data", "base", "query-file", "queries", "type", "k", "metric", "threads", "isa",
          "repeat"}});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "graph_vs_search: {}\n", error.what());
    return 1;
  }
}
