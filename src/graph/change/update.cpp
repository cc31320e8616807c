#include "graph/change/update.h"

#include <algorithm>
#include <cstring>

#include "backend/dispatch.h"
#include "cluster/draw_rows.h"
#include "core/check.h"
#include "graph/build/nn_descent.h"
#include "graph/build/random_streams.h"
#include "graph/change/change.h"
#include "graph/contract.h"
#include "nearwise/exact.h"
#include "ops/memory_limit.h"

namespace nearwise::graph {
namespace {

// Rows whose distances are computed again: graphs of other rows are found by any of them.
constexpr std::size_t checked_rows = 64;

void check_row(const char* operation, const char* what, const Context& context, const RowsView& rows,
               const KnnGraph& graph, std::size_t row) {
  const std::size_t row_bytes = rows.dim() * element_size(rows.type());
  const auto ids = graph.neighbors.ids.row(row);
  const auto count = static_cast<std::size_t>(std::ranges::count_if(ids, [](Id id) { return id != no_id; }));
  if (count == 0) return;
  std::vector<std::byte> gathered(count * row_bytes);
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(gathered.data() + i * row_bytes, rows.row(static_cast<std::size_t>(ids[i])), row_bytes);
  const RowsView listed(gathered.data(), rows.type(), count, rows.dim(), row_bytes);
  const Neighbors found = knn(context, rows.slice(row, 1), listed, count, {.metric = graph.metric});
  for (std::size_t i = 0; i < count; ++i)
    require(found.distances(0, i) == graph.neighbors.distances(row, i),
            "{}: {} must be of these rows, but neighbour {} of row {} is at {}, given {}", operation, what, i,
            row, found.distances(0, i), graph.neighbors.distances(row, i));
}

}  // namespace

// SIFT as two halves of 500,000 rows, degree 10, merged to 0.95 on 2 cores with AMX (2026-11-16), beside 11.3 s for a build of
// all (0.970): overlap 8 and 2000 rows with lists of 16 11.0 s (0.977), with lists of 10 7.9 s (0.977); overlap 6 and 2000 rows
// 6.8 s (0.962), 6 and 3000 5.6 s (0.970), 5 and 3000 5.7 s (0.960). To 0.99, beside 16.2 s (0.995), lists of 10: overlap 12 and
// 4000 rows 10.4 s (0.997), 9 and 5000 8.1 s (0.995), 8 and 6000 13.1 s with a round of descent.
Tuning change_tuning(std::size_t degree, double recall) {
  Tuning tuning = default_tuning(degree, recall);
  // Lists that are full from the start reject nearly everything, and short ones are those that lost neighbours.
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
    check_row(operation, what, context, rows, graph, cluster::draw_from_part(random, rows.rows(), count, i));
}

UpdateMethod choose_update_method(std::size_t rows, std::size_t concerned, bool known_exactly,
                                  const KnnGraphOptions& options, const Tuning& tuning) {
  // Estimates, not measured: a change costs half of what a build does, and a row that meets all others eight times what it
  // costs in exact search.
  const bool is_small = rows <= tuning.exact_rows / 2;
  if (rows <= options.degree + 1) return UpdateMethod::exact;
  UpdateMethod method = UpdateMethod::partitions;
  if (concerned <= tuning.max_compared_rows && (!is_small || concerned <= rows / 8))
    method = UpdateMethod::compare;
  else if (is_small)
    return UpdateMethod::exact;
  if (options.recall == 1 && !(method == UpdateMethod::compare && known_exactly)) return UpdateMethod::exact;
  return method;
}

std::uint64_t bytes_of(UpdateMethod method, const Context& context, const RowsView& rows,
                       const KnnGraphOptions& options, const Tuning& tuning) {
  return method == UpdateMethod::exact ? 0 : Builder::bytes(context, rows, options, tuning);
}

KnnGraph compare_with_all(const char* operation, const Context& context, const RowsView& rows,
                          const Comparison& comparison, const KnnGraphOptions& options,
                          const Tuning& tuning) {
  const auto first = [&](Builder& builder) {
    builder.begin(comparison.initial);
    builder.compare_with_all(comparison.rows);
  };
  if (!comparison.exact) return run_nn_descent(operation, context, rows, options, tuning, first);
  check_memory(operation, context, Builder::bytes(context, rows, options, tuning));
  Builder builder(context, rows, options, tuning);
  first(builder);
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
