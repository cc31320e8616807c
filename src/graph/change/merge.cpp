// merge_knn_graphs and add_to_knn_graph: joins two sets of rows, each with its own neighbours.
//
// Many rows on both sides are compared across the sides within overlapping partitions. Few rows on one side
// are compared with all rows, which keeps an exact graph exact. Then as in a build: NN-Descent, measured
// recall, exact search.
#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/stages.h"
#include "core/check.h"
#include "core/float_environment.h"
#include "graph/build/nn_descent.h"
#include "graph/change/change.h"
#include "graph/change/update_method.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace graph {
namespace {

// The neighbours of the rows from `first` on.
struct Part {
  const Neighbors& neighbors;
  std::size_t first = 0;
};

void append_initial(const Part& part, std::size_t row, std::vector<InitialNeighbor>& found) {
  const auto ids = part.neighbors.ids.row(row - part.first);
  const auto distances = part.neighbors.distances.row(row - part.first);
  for (std::size_t i = 0; i < ids.size() && ids[i] != no_id; ++i)
    found.push_back(
        {static_cast<std::uint32_t>(part.first + static_cast<std::size_t>(ids[i])), distances[i]});
}

std::vector<std::uint32_t> numbers(std::size_t first, std::size_t count) {
  std::vector<std::uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(first));
  return rows;
}

// The graphs must outlive the result.
Sides sides_of(const KnnGraph& left, const KnnGraph& right) {
  const std::size_t left_rows = left.rows();
  return {.left_rows = left_rows,
          .initial =
              [&left, &right, left_rows](std::size_t row, std::vector<InitialNeighbor>& found) {
                append_initial(row < left_rows ? Part{left.neighbors, 0} : Part{right.neighbors, left_rows},
                               row, found);
              },
          .is_exact = (left.rows() <= right.rows() ? right : left).report.method == GraphMethod::exact};
}

UpdateMethod method_of(const RowsView& rows, const Sides& sides, const KnnGraphOptions& options,
                       const Tuning& tuning) {
  return choose_update_method(rows.rows(), std::min(sides.left_rows, rows.rows() - sides.left_rows),
                              sides.is_exact, options, tuning);
}

}  // namespace

KnnGraph merge_sides(const char* operation, const Context& context, const RowsView& rows, const Sides& sides,
                     const KnnGraphOptions& options, const Tuning& tuning) {
  const std::size_t left_rows = sides.left_rows;
  const std::size_t right_rows = rows.rows() - left_rows;
  const UpdateMethod method = method_of(rows, sides, options, tuning);
  if (method == UpdateMethod::exact) return exact_graph(context, rows, options);
  if (method == UpdateMethod::compare) {
    const std::vector<std::uint32_t> few =
        left_rows <= right_rows ? numbers(0, left_rows) : numbers(left_rows, right_rows);
    return compare_with_all(operation, context, rows, {sides.initial, few, sides.is_exact}, options, tuning);
  }
  return run_nn_descent(
      operation, context, rows, options, tuning,
      [&](Builder& builder, const Context& step) { builder.join_sides(step, left_rows, sides.initial); });
}

KnnGraph merge(const Context& context, const RowsView& rows, const KnnGraph& left, const KnnGraph& right,
               const KnnGraphChangeOptions& options, const Tuning& tuning) {
  const char* const operation = "merge_knn_graphs";
  const KnnGraphOptions all = options_of(left, options);
  check_arguments(operation, context, rows, all);
  require(left.metric == right.metric, "{}: both graphs must have the same metric, got {} and {}", operation,
          name(left.metric), name(right.metric));
  require(left.degree() == right.degree(), "{}: both graphs must have the same degree, got {} and {}",
          operation, left.degree(), right.degree());
  require(rows.rows() == left.rows() + right.rows(),
          "{}: the rows of both graphs, {} and {}, expected, got {} rows", operation, left.rows(),
          right.rows(), rows.rows());
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  check_finite(operation, context, rows);
  const Sides sides = sides_of(left, right);
  check_memory(operation, context, bytes_of(method_of(rows, sides, all, tuning), context, rows, all, tuning));
  check_graph(operation, "the left graph", context, rows.slice(0, left.rows()), left);
  check_graph(operation, "the right graph", context, rows.slice(left.rows(), right.rows()), right);
  return merge_sides(operation, context, rows, sides, all, tuning);
}

KnnGraph add(const Context& context, const RowsView& rows, const KnnGraph& graph,
             const KnnGraphChangeOptions& options, const Tuning& tuning, const Tuning& building) {
  const char* const operation = "add_to_knn_graph";
  const KnnGraphOptions all = options_of(graph, options);
  check_arguments(operation, context, rows, all);
  require(rows.rows() >= graph.rows(), "{}: the {} rows of the graph and then others expected, got {} rows",
          operation, graph.rows(), rows.rows());
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  check_finite(operation, context, rows);
  const std::size_t more = rows.rows() - graph.rows();
  const RowsView newcomers = rows.slice(graph.rows(), more);
  const bool is_exact = graph.report.method == GraphMethod::exact;
  const UpdateMethod method = choose_update_method(rows.rows(), more, is_exact, all, tuning);
  const std::uint64_t other_bytes = more * all.degree * (sizeof(Id) + sizeof(float));
  check_memory(operation, context,
               method != UpdateMethod::partitions
                   ? bytes_of(method, context, rows, all, tuning)
                   : std::max(Builder::bytes(context, newcomers, all, building),
                              Builder::bytes(context, rows, all, tuning) + other_bytes));
  check_graph(operation, "the graph", context, rows.slice(0, graph.rows()), graph);
  if (method == UpdateMethod::exact) return exact_graph(context, rows, all);
  if (method == UpdateMethod::compare) {
    const InitialNeighbors initial = [&](std::size_t row, std::vector<InitialNeighbor>& found) {
      if (row < graph.rows()) append_initial({graph.neighbors, 0}, row, found);
    };
    const std::vector<std::uint32_t> few = numbers(graph.rows(), more);
    return compare_with_all(operation, context, rows, {initial, few, is_exact}, all, tuning);
  }
  KnnGraphOptions silent = all;
  silent.on_round = {};
  // The union costs half a build: its rows start with neighbours.
  Stages stages(context, operation);
  const KnnGraph other = build(stages.next(static_cast<double>(more), static_cast<double>(rows.rows()) / 2),
                               newcomers, silent, building);
  const Reservation reservation(*context.state().budget, other_bytes);
  KnnGraph merged = merge_sides(operation, stages.next(1, 0), rows, sides_of(graph, other), all, tuning);
  stages.finish();
  return merged;
}

}  // namespace graph

KnnGraph merge_knn_graphs(const Context& context, RowsView rows, const KnnGraph& left, const KnnGraph& right,
                          const KnnGraphChangeOptions& options) {
  return graph::merge(context, rows, left, right, options,
                      graph::change_tuning(left.degree(), options.target_recall));
}

KnnGraph add_to_knn_graph(const Context& context, RowsView rows, const KnnGraph& graph,
                          const KnnGraphChangeOptions& options) {
  return graph::add(context, rows, graph, options,
                    graph::change_tuning(graph.degree(), options.target_recall),
                    graph::default_tuning(graph.degree(), options.target_recall));
}

}  // namespace nearwise
