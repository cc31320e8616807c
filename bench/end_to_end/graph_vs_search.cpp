// Time of the exact k-NN graph relative to a search with every row as a query: each pair needs one product,
// not two.
//
//   graph_vs_search [--k K]
//
// One round is: graph, search. Their answers must be equal. Output: one JSON object.
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
  const std::size_t k = options.number("k", 10);
  const KnnOptions graph_options = {.metric = options.metric()};
  KnnOptions search_options = graph_options;
  search_options.exclude_self = true;
  const bench::OwnedRows owned = bench::load_rows(options);
  const RowsView base = owned;
  const Context context = options.context();

  const RowsView some = base.slice(0, std::min<std::size_t>(base.rows(), 20'000));
  exact_knn_graph(context, some, k, graph_options);  // warm up
  knn(context, some, some, k, search_options);
  std::vector<double> graph_seconds, search_seconds, ratios;
  for (std::size_t round = 0; round < options.repeat(3); ++round) {
    Neighbors graph;
    Neighbors found;
    graph_seconds.push_back(
        bench::seconds([&] { graph = exact_knn_graph(context, base, k, graph_options); }));
    search_seconds.push_back(bench::seconds([&] { found = knn(context, base, base, k, search_options); }));
    ratios.push_back(graph_seconds.back() / search_seconds.back());
    if (!equal(graph, found)) throw std::runtime_error("graph and search differ");
  }
  nlohmann::json report = bench::shape_of(base, context);
  report.update({{"metric", name(graph_options.metric)},
                 {"k", k},
                 {"graph_seconds", graph_seconds},
                 {"search_seconds", search_seconds},
                 {"ratios", ratios},
                 {"ratio", bench::median(ratios)},
                 {"spread", bench::spread(ratios)}});
  bench::print(report);
}

}  // namespace

int main(int count, char** arguments) { return nearwise::bench::run_program(count, arguments, {"k"}, run); }
