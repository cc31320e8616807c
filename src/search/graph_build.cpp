// Building a graph index: codes, edges, entries, calibration.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "graph/change/change.h"
#include "nearwise/graph_index.h"
#include "nearwise/machine.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"
#include "search/build_edges.h"
#include "search/graph_index_state.h"
#include "search/train_codec.h"

namespace nearwise {
namespace {

constexpr std::size_t max_rows = 0x7FFF'FFFF;
constexpr std::size_t max_degree = 128;
constexpr std::size_t task_rows = 1024;
// Shares of the time of a build, for progress.
constexpr double codes_cost = 2;
constexpr double lists_cost = 70;
constexpr double edges_cost = 20;
constexpr double entries_cost = 3;
constexpr double calibration_cost = 5;

void check_arguments(const char* operation, const Context& context, const RowsView& rows,
                     const GraphIndexOptions& options) {
  check_rows(operation, context, rows, rows, {"rows", "rows"});
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  require(rows.rows() >= 1 && rows.rows() <= max_rows, "{}: rows must be 1 to {}, got {}", operation,
          max_rows, rows.rows());
  require(rows.dim() < ScalarCodec::max_dim, "{}: the dimension must be at most {}, got {}", operation,
          ScalarCodec::max_dim - 1, rows.dim());
  require(options.degree >= degree_granule && options.degree <= max_degree &&
              options.degree % degree_granule == 0,
          "{}: degree must be a multiple of {} from {} to {}, got {}", operation, degree_granule,
          degree_granule, max_degree, options.degree);
  require(options.graph_recall > 0 && options.graph_recall <= 1,
          "{}: graph_recall must be above 0 and at most 1, got {}", operation, options.graph_recall);
  require(options.ids.empty() || options.ids.size() == rows.rows(),
          "{}: there must be an id for each row, got {} ids for {} rows", operation, options.ids.size(),
          rows.rows());
  check_finite(operation, context, rows);
}

// Row numbers in ascending order of their ids.
Buffer<std::uint32_t> order_of(const char* operation, const Context& context, std::span<const Id> ids) {
  Buffer<std::uint32_t> order(*context.state().budget, ids.size());
  std::iota(order.data(), order.data() + order.size(), 0U);
  std::ranges::sort(order.span(), {}, [&](std::uint32_t row) { return ids[row]; });
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Id id = ids[order[i]];
    require(id >= 0, "{}: ids must not be negative, got {}", operation, id);
    require(i == 0 || ids[order[i - 1]] != id, "{}: ids must be different, got {} twice", operation, id);
  }
  return order;
}

// Codes, vectors and ids of an index without edges.
std::unique_ptr<GraphIndexInternals::State> encode(const char* operation, const Context& context,
                                                   const RowsView& rows, const GraphIndexOptions& options) {
  const Context::State& caller = context.state();
  const std::shared_ptr<MemoryBudget> budget = caller.budget;
  auto state = std::make_unique<GraphIndexInternals::State>();
  state->budget = budget;
  state->codec = search::train_codec(context, rows, options.metric);
  const Buffer<std::uint32_t> order =
      options.ids.empty() ? Buffer<std::uint32_t>() : order_of(operation, context, options.ids);
  const auto source_row = [&](std::size_t row) { return order.size() == 0 ? row : order[row]; };
  const std::size_t count = rows.rows();
  const std::size_t row_bytes = state->codec.row_bytes();
  state->own_codes = Buffer<std::uint8_t>(*budget, checked_multiply(count, row_bytes, "bytes of codes"));
  use_huge_pages(state->own_codes.data(), state->own_codes.size());
  caller.threads->for_each(divide_up(count, task_rows), [&](std::size_t task) {
    caller.cancel.check();
    std::vector<double> scratch(state->codec.code_dim());
    for (std::size_t row = task * task_rows; row < std::min(count, (task + 1) * task_rows); ++row)
      state->codec.encode(rows, source_row(row), scratch.data(), state->own_codes.data() + row * row_bytes);
  });
  state->codes = {state->own_codes.data(), count, row_bytes};

  if (rows.type() == ElementType::u8 && state->codec.is_exact()) {
    state->vectors = {state->own_codes.data(), ElementType::u8, count, rows.dim(), row_bytes};
  } else {
    const std::size_t bytes = row_bytes_of(rows);
    state->own_vectors = Buffer<std::byte>(*budget, checked_multiply(count, bytes, "bytes of vectors"));
    gather_rows(
        context, rows, count,
        [&](std::size_t row) {
          return PlacedRow{source_row(row), row};
        },
        state->own_vectors.data());
    state->vectors = {state->own_vectors.data(), rows.type(), count, rows.dim(), bytes};
  }
  if (!options.ids.empty()) {
    state->own_ids = Buffer<Id>(*budget, count);
    for (std::size_t row = 0; row < count; ++row) state->own_ids[row] = options.ids[source_row(row)];
    state->ids = state->own_ids.span();
  }
  if (count >= search::min_nibble_rows) {
    search::train_nibbles(state->codec, state->codes);
    const std::size_t nibble_bytes = state->codec.nibble_row_bytes();
    state->own_nibbles = Buffer<std::uint8_t>(*budget, count * nibble_bytes);
    use_huge_pages(state->own_nibbles.data(), state->own_nibbles.size());
    caller.threads->for_each(divide_up(count, task_rows), [&](std::size_t task) {
      caller.cancel.check();
      for (std::size_t row = task * task_rows; row < std::min(count, (task + 1) * task_rows); ++row)
        state->codec.encode_nibbles(state->own_codes.data() + row * row_bytes,
                                    state->own_nibbles.data() + row * nibble_bytes);
    });
    state->nibbles = {state->own_nibbles.data(), count, nibble_bytes};
  }
  return state;
}

// Neighbour lists as candidates for edges.
Buffer<std::int32_t> lists_of(MemoryBudget& budget, const Matrix<Id>& ids) {
  Buffer<std::int32_t> lists(budget, ids.rows() * ids.cols());
  for (std::size_t i = 0; i < lists.size(); ++i) lists[i] = static_cast<std::int32_t>(ids.data()[i]);
  return lists;
}

// The edges between rows that are compared by their codes alone, whatever the metric.
Buffer<std::int32_t> neighbor_lists(const Context& context, const GraphIndexInternals::State& state,
                                    const GraphIndexOptions& options, std::size_t& length) {
  length = std::min(options.degree, state.rows() - 1);
  if (length == 0) return {};
  const RowsView codes(state.codes.data(), ElementType::u8, state.rows(), state.codec.code_dim(),
                       state.codes.cols());
  const Reservation results(*context.state().budget, state.rows() * length * (sizeof(Id) + sizeof(float)));
  const KnnGraph graph =
      build_knn_graph(context, codes, {.degree = length, .target_recall = options.graph_recall});
  return lists_of(*context.state().budget, graph.neighbors.ids);
}

// Everything after the neighbour lists.
GraphIndex finish(Stages& stages, const Context& context, std::unique_ptr<GraphIndexInternals::State> state,
                  Buffer<std::int32_t> lists, std::size_t length, const GraphIndexOptions& options,
                  const std::optional<GraphCalibrationOptions>& calibration) {
  const std::size_t rows = state->rows();
  state->own_edges = search::build_edges(stages.next(edges_cost, entries_cost + calibration_cost),
                                         state->codes, {lists.data(), rows, length}, options.degree);
  lists = {};
  const Context quiet = stages.next(entries_cost, calibration_cost);
  state->entries = search::EntryTree::train(quiet, state->codes, state->codec.code_dim());
  search::connect_rows(quiet, state->codes, state->codec.code_dim(),
                       {state->own_edges.data(), rows, options.degree});
  state->edges = {state->own_edges.data(), rows, options.degree};
  state->provenance = {{"version", "nearwise " + version()}, {"seed", std::to_string(context.seed())}};
  state->prepare(context);
  GraphIndex index = GraphIndexInternals::make(std::move(state));
  if (calibration && rows >= 2) index.calibrate(stages.next(calibration_cost, 0), *calibration);
  stages.finish();
  return index;
}

}  // namespace

GraphIndex GraphIndex::build(const Context& context, RowsView rows, const GraphIndexOptions& options,
                             const std::optional<GraphCalibrationOptions>& calibration) {
  constexpr const char* operation = "GraphIndex.build";
  const DefaultFloatEnvironment environment;
  check_arguments(operation, context, rows, options);
  Stages stages(context, operation);
  const double later = edges_cost + entries_cost + calibration_cost;
  auto state = encode(operation, stages.next(codes_cost, lists_cost + later), rows, options);
  std::size_t length = 0;
  Buffer<std::int32_t> lists = neighbor_lists(stages.next(lists_cost, later), *state, options, length);
  return finish(stages, context, std::move(state), std::move(lists), length, options, calibration);
}

GraphIndex GraphIndex::from_knn_graph(const Context& context, const KnnGraph& graph, RowsView rows,
                                      const GraphIndexOptions& options,
                                      const std::optional<GraphCalibrationOptions>& calibration) {
  constexpr const char* operation = "GraphIndex.from_knn_graph";
  const DefaultFloatEnvironment environment;
  check_arguments(operation, context, rows, options);
  require(graph.metric == options.metric, "{}: the graph must have the metric {}, got {}", operation,
          name(options.metric), name(graph.metric));
  require(options.ids.empty() || std::ranges::is_sorted(options.ids),
          "{}: ids must be in ascending order, as the rows of the graph are", operation);
  graph::check_graph(operation, "graph", context, rows, graph);
  Stages stages(context, operation);
  auto state =
      encode(operation, stages.next(codes_cost, edges_cost + entries_cost + calibration_cost), rows, options);
  return finish(stages, context, std::move(state), lists_of(*context.state().budget, graph.neighbors.ids),
                graph.degree(), options, calibration);
}

}  // namespace nearwise
