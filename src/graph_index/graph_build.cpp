// Building a graph index: codes, edges, entries, calibration.
#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "graph/change/change.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/graph_build.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/memory_needs.h"
#include "graph_index/train_codec.h"
#include "nearwise/graph_index.h"
#include "nearwise/machine.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace {

constexpr std::size_t max_degree = 128;

// Expected durations, for progress: microseconds on two threads (Xeon without AMX, November 2026).
struct BuildCosts {
  explicit BuildCosts(const RowsView& source) {
    const auto rows = static_cast<double>(source.rows());
    const auto dim = static_cast<double>(source.dim());
    codes = rows * (0.5 + 0.04 * dim);
    lists = rows * (10 + 0.08 * dim);
    edges = rows * (20 + 0.06 * dim);
    entries = rows * 8;
    connection = rows * 25;
    calibration = 4e5 + 5000 * dim + rows;
  }

  double codes, lists, edges, entries, connection;
  double all() const { return codes + lists + edges + entries + connection; }
  double calibration;  // its trials are as many for any number of rows
};

void check_arguments(const char* operation, const Context& context, const RowsView& rows,
                     const GraphIndexOptions& options) {
  check_rows(operation, context, rows, rows, {"rows", "rows"});
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  graph_index::check_graph_options(operation, rows, options);
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
    require(id < std::numeric_limits<Id>::max(), "{}: ids must be below 2^63 - 1, got {}", operation, id);
    require(i == 0 || ids[order[i - 1]] != id, "{}: ids must be different, got {} twice", operation, id);
  }
  return order;
}

// Codes, vectors and ids, without edges.
graph_index::GraphRows encode(const char* operation, const Context& context,
                              const std::shared_ptr<MemoryBudget>& budget, const RowsView& source,
                              const GraphIndexOptions& options) {
  graph_index::GraphRows rows;
  ScalarCodec codec = graph_index::train_codec(context, source, options.metric);
  const Buffer<std::uint32_t> order =
      options.ids.empty() ? Buffer<std::uint32_t>() : order_of(operation, context, options.ids);
  const auto source_row = [&](std::size_t row) { return order.size() == 0 ? row : order[row]; };
  const std::size_t count = source.rows();
  const std::size_t row_bytes = codec.row_bytes();
  rows.own_codes = Buffer<std::uint8_t>(*budget, checked_multiply(count, row_bytes, "bytes of codes"));
  use_huge_pages(rows.own_codes.data(), rows.own_codes.size());
  graph_index::encode_rows(context, codec, source, count, source_row, rows.own_codes.data());
  rows.codes = {rows.own_codes.data(), count, row_bytes};

  if (graph_index::are_vectors_codes(codec, source.type())) {
    rows.vectors = {rows.own_codes.data(), ElementType::u8, count, source.dim(), row_bytes};
  } else {
    const std::size_t bytes = row_bytes_of(source);
    rows.own_vectors = Buffer<std::byte>(*budget, checked_multiply(count, bytes, "bytes of vectors"));
    gather_rows(
        context, source, count,
        [&](std::size_t row) {
          return PlacedRow{source_row(row), row};
        },
        rows.own_vectors.data());
    rows.vectors = {rows.own_vectors.data(), source.type(), count, source.dim(), bytes};
  }
  if (!options.ids.empty()) {
    rows.own_ids = Buffer<Id>(*budget, count);
    for (std::size_t row = 0; row < count; ++row) rows.own_ids[row] = options.ids[source_row(row)];
    rows.ids = rows.own_ids.span();
  }
  if (count >= graph_index::min_nibble_rows) {
    graph_index::train_nibbles(codec, rows.codes);
    rows.own_nibbles = Buffer<std::uint8_t>(*budget, count * codec.nibble_row_bytes());
    use_huge_pages(rows.own_nibbles.data(), rows.own_nibbles.size());
    graph_index::encode_nibbles(context, codec, rows.own_codes.data(), count, rows.own_nibbles.data());
    rows.nibbles = {rows.own_nibbles.data(), count, codec.nibble_row_bytes()};
  }
  rows.codec = std::make_shared<const ScalarCodec>(std::move(codec));
  return rows;
}

// Neighbour lists as candidates for edges.
Buffer<std::int32_t> lists_of(MemoryBudget& budget, const Matrix<Id>& ids) {
  Buffer<std::int32_t> lists(budget, ids.rows() * ids.cols());
  for (std::size_t i = 0; i < lists.size(); ++i) lists[i] = static_cast<std::int32_t>(ids.data()[i]);
  return lists;
}

// The edges between rows that are compared by their codes alone, whatever the metric.
Buffer<std::int32_t> neighbor_lists(const Context& context, const graph_index::GraphRows& rows,
                                    const GraphIndexOptions& options, std::size_t& length) {
  length = std::min(options.degree, rows.count() - 1);
  if (length == 0) return {};
  const RowsView codes(rows.codes.data(), ElementType::u8, rows.count(), rows.codec->code_dim(),
                       rows.codes.cols());
  const Reservation results(*context.state().budget, rows.count() * length * (sizeof(Id) + sizeof(float)));
  const KnnGraph graph =
      build_knn_graph(context, codes, {.degree = length, .target_recall = options.graph_recall});
  return lists_of(*context.state().budget, graph.neighbors.ids);
}

// Edges from neighbour lists, and entries.
graph_index::SearchedGraph with_edges(Stages& stages, const BuildCosts& costs,
                                      const std::shared_ptr<MemoryBudget>& budget,
                                      graph_index::GraphRows rows, Buffer<std::int32_t> lists,
                                      std::size_t length, std::size_t degree) {
  const std::size_t count = rows.count();
  const std::size_t code_dim = rows.codec->code_dim();
  rows.own_edges = graph_index::build_edges(stages.next(costs.edges, costs.entries + costs.connection),
                                            *budget, rows.codes, {lists.data(), count, length}, degree);
  lists = {};
  const Context context = stages.next(costs.entries, costs.connection);
  graph_index::SearchedGraph graph;
  graph.entries = graph_index::EntryTree::train(context, rows.codes, code_dim);
  graph_index::connect_rows(stages.next(costs.connection, 0), rows.codes, code_dim,
                            {rows.own_edges.data(), count, degree});
  rows.edges = {rows.own_edges.data(), count, degree};
  graph.rows = std::move(rows);
  graph.prepare(context, budget);
  return graph;
}

// Everything after the graph.
GraphIndex finish(Stages& stages, const Context& context, graph_index::SearchedGraph graph,
                  const std::optional<GraphCalibrationOptions>& calibration) {
  const std::size_t rows = graph.rows.count();
  auto state = std::make_unique<GraphIndexInternals::State>(context.state().budget, std::move(graph));
  state->provenance = {{"version", "nearwise " + version()}, {"seed", std::to_string(context.seed())}};
  GraphIndex index = GraphIndexInternals::make(std::move(state));
  if (calibration && rows >= 2)
    GraphIndexInternals::calibrate(index, stages.next(1, 0), *calibration, MemoryCheck::by_caller);
  stages.finish();
  return index;
}

}  // namespace

void graph_index::check_graph_options(const char* operation, const RowsView& rows,
                                      const GraphIndexOptions& options) {
  require(rows.rows() >= 1 && rows.rows() <= graph_index::max_graph_rows, "{}: rows must be 1 to {}, got {}",
          operation, graph_index::max_graph_rows, rows.rows());
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
}

GraphIndex graph_index::index_of_graph(const Context& context, SearchedGraph graph,
                                       const GraphCalibrationOptions& calibration) {
  graph.prepare(context, context.state().budget);
  Stages stages(context, "GraphIndex.calibrate");
  return finish(stages, context, std::move(graph), calibration);
}

graph_index::SearchedGraph graph_index::build_graph(const char* operation, const Context& context,
                                                    const std::shared_ptr<MemoryBudget>& budget,
                                                    const RowsView& source,
                                                    const GraphIndexOptions& options) {
  Stages stages(context, operation);
  const BuildCosts costs(source);
  const double later = costs.edges + costs.entries + costs.connection;
  GraphRows rows = encode(operation, stages.next(costs.codes, costs.lists + later), budget, source, options);
  std::size_t length = 0;
  Buffer<std::int32_t> lists = neighbor_lists(stages.next(costs.lists, later), rows, options, length);
  SearchedGraph graph =
      with_edges(stages, costs, budget, std::move(rows), std::move(lists), length, options.degree);
  stages.finish();
  return graph;
}

GraphIndex GraphIndex::build(const Context& context, RowsView rows, const GraphIndexOptions& options,
                             const std::optional<GraphCalibrationOptions>& calibration) {
  constexpr const char* operation = "GraphIndex.build";
  const DefaultFloatEnvironment environment;
  check_arguments(operation, context, rows, options);
  check_memory(operation, context, graph_index::building_bytes(context, rows, options, calibration));
  const BuildCosts costs(rows);
  Stages stages(context, operation);
  graph_index::SearchedGraph graph =
      graph_index::build_graph(operation, stages.next(costs.all(), calibration ? costs.calibration : 0),
                               context.state().budget, rows, options);
  return finish(stages, context, std::move(graph), calibration);
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
  check_memory(operation, context,
               graph_index::building_bytes(context, rows, options, calibration, graph.degree()));
  const std::shared_ptr<MemoryBudget> budget = context.state().budget;
  Stages stages(context, operation);
  const BuildCosts costs(rows);
  Stages building(stages.next(costs.all() - costs.lists, calibration ? costs.calibration : 0), operation);
  graph_index::GraphRows encoded = encode(
      operation, building.next(costs.codes, costs.all() - costs.codes - costs.lists), budget, rows, options);
  graph_index::SearchedGraph made =
      with_edges(building, costs, budget, std::move(encoded), lists_of(*budget, graph.neighbors.ids),
                 graph.degree(), options.degree);
  building.finish();
  return finish(stages, context, std::move(made), calibration);
}

}  // namespace nearwise
