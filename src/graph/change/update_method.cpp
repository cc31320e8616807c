#include "graph/change/update_method.h"

#include <algorithm>
#include <vector>

#include "backend/dispatch.h"
#include "cluster/draw_rows.h"
#include "core/check.h"
#include "core/convert.h"
#include "core/lost_pages.h"
#include "core/plain_distance.h"
#include "graph/build/nn_descent.h"
#include "graph/change/change.h"
#include "graph/contract.h"
#include "graph/random_streams.h"
#include "ops/memory_limit.h"

namespace nearwise::graph {
namespace {

// Sampled rows whose distances are recomputed: a graph with 1 % wrong rows passes with probability at most
// 0.99^688 < 0.001.
constexpr std::size_t checked_rows = 688;

void check_row(const char* operation, const char* what, const RowsView& rows, const KnnGraph& graph,
               std::size_t row) {
  std::vector<double> own(rows.dim());
  std::vector<double> other(rows.dim());
  row_to_double(rows, row, own.data());
  const double norm = sum_of_squares(own);
  const auto ids = graph.neighbors.ids.row(row);
  for (std::size_t i = 0; i < ids.size() && ids[i] != no_id; ++i) {
    row_to_double(rows, static_cast<std::size_t>(ids[i]), other.data());
    const float distance = plain_distance(graph.metric, own, norm, other);
    check_lost_pages();  // zeros are not other rows
    require(distance == graph.neighbors.distances(row, i),
            "{}: {} must be of these rows, but neighbour {} of row {} is at {}, got {}", operation, what, i,
            row, distance, graph.neighbors.distances(row, i));
  }
}

}  // namespace

// Chosen by the table of merges in docs/algorithms/knn-graph.md.
Tuning change_tuning(std::size_t degree, double recall) {
  Tuning tuning = default_tuning(degree, recall);
  // Lists that start full reject nearly all candidates, so spare entries bring nothing.
  tuning.list = degree;
  tuning.overlap = recall <= 0.97 ? 6 : 9;
  tuning.partition_rows = recall <= 0.97 ? 3000 : 5000;
  return tuning;
}

void check_graph(const char* operation, const char* what, const Context& context, const RowsView& rows,
                 const KnnGraph& graph) {
  try {
    check_contract(context, graph);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    fail(ErrorCode::invalid_argument, "{}: {}: {}", operation, what, error.what());
  }
  const std::size_t count = std::min(checked_rows, rows.rows());
  const Random random = random_stream(context.seed(), Draw::recall);
  for (std::size_t i = 0; i < count; ++i)
    check_row(operation, what, rows, graph, cluster::draw_from_part(random, rows.rows(), count, i));
}

UpdateMethod choose_update_method(std::size_t rows, std::size_t affected, bool is_exact,
                                  const KnnGraphOptions& options, const Tuning& tuning) {
  // Estimates: a change costs half a build, and comparing a row with all others eight times its share of
  // exact search.
  const bool is_small = rows <= tuning.exact_rows / 2;
  if (rows <= options.degree + 1) return UpdateMethod::exact;
  UpdateMethod method = UpdateMethod::partitions;
  if (affected <= tuning.max_compared_rows && (!is_small || affected <= rows / 8))
    method = UpdateMethod::compare;
  else if (is_small)
    return UpdateMethod::exact;
  if (options.target_recall == 1 && !(method == UpdateMethod::compare && is_exact))
    return UpdateMethod::exact;
  return method;
}

std::uint64_t bytes_of(UpdateMethod method, const Context& context, const RowsView& rows,
                       const KnnGraphOptions& options, const Tuning& tuning) {
  return method == UpdateMethod::exact ? 0 : Builder::bytes(context, rows, options, tuning);
}

KnnGraph compare_with_all(const char* operation, const Context& context, const RowsView& rows,
                          const Comparison& comparison, const KnnGraphOptions& options,
                          const Tuning& tuning) {
  const auto first = [&](Builder& builder, const Context& step) {
    builder.begin(comparison.initial);
    builder.compare_with_all(step, comparison.rows);
  };
  if (!comparison.is_exact) return run_nn_descent(operation, context, rows, options, tuning, first);
  check_memory(operation, context, Builder::bytes(context, rows, options, tuning));
  Builder builder(context, rows, options, tuning);
  first(builder, context);
  const Reservation reservation(*context.state().budget,
                                rows.rows() * options.degree * (sizeof(Id) + sizeof(float)));
  const RecallEstimate all = {.value = 1, .low = 1, .high = 1, .rows = rows.rows()};
  const GraphRound round = {.round = 0, .updates = builder.updates(), .recall = all};
  if (options.on_round) options.on_round(round);
  return {.neighbors = builder.finish(),
          .metric = options.metric,
          .report = {.method = GraphMethod::exact, .recall = all, .reached = true, .rounds = {round}}};
}

}  // namespace nearwise::graph
