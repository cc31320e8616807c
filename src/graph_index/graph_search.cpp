// Searches of a graph index.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "core/progress.h"
#include "graph_index/graph_filter.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/search_graph.h"
#include "nearwise/exact.h"
#include "ops/check_rows.h"
#include "ops/filter/filtered_search.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace graph_index {
namespace {

using State = GraphIndexInternals::State;

// Exact search of the rows that a filter of rows allows.
Neighbors search_exactly(const Context& context, const SearchedGraph& graph, const RowsView& queries,
                         std::size_t k, const Filter& rows) {
  return knn(context, queries, graph.rows.vectors, k,
             {.metric = graph.rows.codec->metric, .short_rows = ShortRows::pad, .filter = rows});
}

// Traverses the graph; queries that meet too few allowed rows are answered exactly.
Neighbors search_allowed_rows(const Context& context, const SearchedGraph& graph, const RowsView& queries,
                              std::size_t k, const GraphBeam& beam, const AllowedRows& allowed) {
  std::vector<std::uint8_t> is_starved(queries.rows());
  Neighbors found = search_rows(context, graph, queries,
                                {.k = k, .beam = beam, .allowed = allowed.bits(), .is_starved = is_starved});
  std::vector<std::uint32_t> starved;
  for (std::uint32_t query = 0; query < queries.rows(); ++query)
    if (is_starved[query] != 0) starved.push_back(query);
  if (starved.empty()) return found;
  const GatheredRows some(context, queries, starved);
  const Neighbors exact = search_exactly(context.without_progress(), graph, some.view(), k, allowed.filter);
  for (std::size_t i = 0; i < starved.size(); ++i) {
    std::ranges::copy(exact.ids.row(i), found.ids.row(starved[i]).begin());
    std::ranges::copy(exact.distances.row(i), found.distances.row(starved[i]).begin());
  }
  return found;
}

// Row numbers of the best k of these rows; null: of all.
Neighbors search_shared(const Context& context, const SearchedGraph& graph, const RowsView& queries,
                        std::size_t k, const GraphBeam& beam, const AllowedRows* allowed) {
  if (allowed == nullptr) {
    // As wide as this, the beam would hold all rows, but for those that changes may have cut off.
    if (beam.width >= graph.rows.count()) return search_exactly(context, graph, queries, k, {});
    return search_rows(context, graph, queries, {.k = k, .beam = beam});
  }
  if (allowed->count == 0) return padding(queries.rows(), k, graph.rows.codec->metric);
  const GraphFilterPlan plan = plan_graph_filter({.queries = queries.rows(),
                                                  .rows = graph.rows.count(),
                                                  .allowed = allowed->count,
                                                  .beam = beam.width,
                                                  .row_bytes = row_bytes_of(graph.rows.vectors),
                                                  .code_bytes = graph.rows.codes.cols(),
                                                  .degree = graph.rows.edges.cols()});
  // Few removed vectors are no reason to compare all others: the estimates are for filters.
  const bool is_exact = plan.exact && allowed != graph.live.get();
  if (is_exact || allowed->count <= k || plan.beam >= graph.rows.count())
    return search_exactly(context, graph, queries, k, allowed->filter);
  return search_allowed_rows(context, graph, queries, k, {plan.beam, beam.is_evaluated}, *allowed);
}

// Row numbers of the results.
Neighbors search_filtered(const Context& context, const State& state, const RowsView& queries, std::size_t k,
                          const GraphBeam& beam, const Filter& filter) {
  const SearchedGraph& graph = state.graph;
  const Filter own = query_rows(state, filter, queries.rows());
  if (FilterInternals::per_query(own) == FilterInternals::PerQuery::allow)
    return search_exactly(context, graph, queries, k, own);
  const auto allowed = allowed_rows(graph, filter);
  const DeniedIds denied = FilterInternals::denied(own);
  if (!denied.any()) return search_shared(context, graph, queries, k, beam, allowed.get());
  // Results that are denied to their query are left out afterwards.
  const std::size_t all = std::min(k + denied.longest(), graph.rows.count());
  const Neighbors found = search_shared(context, graph, queries, all,
                                        {beam.width + denied.longest(), beam.is_evaluated}, allowed.get());
  return drop_denied(found, k, denied, graph.rows.codec->metric);
}

// Orders results of equal distance by id: rows that were added are not in the order of ids.
void order_ties(std::span<Id> ids, std::span<const float> distances) {
  for (std::size_t first = 0; first < ids.size();) {
    std::size_t end = first + 1;
    while (end < ids.size() && distances[end] == distances[first]) ++end;
    // Padding stays at the end.
    std::ranges::sort(ids.subspan(first, end - first), {},
                      [](Id id) { return static_cast<std::uint64_t>(id); });
    first = end;
  }
}

}  // namespace

void check_queries(const char* operation, const Context& context, const RowsView& queries,
                   const SearchedGraph& graph) {
  check_rows(operation, context, queries, graph.rows.vectors, {"queries", "index"});
  require(queries.place().kind == DeviceKind::cpu, "{}: queries must be on the host, got queries on {}",
          operation, name(queries.place()));
}

Neighbors search_rows(const Context& context, const SearchedGraph& graph, const RowsView& queries,
                      const RowSearch& options) {
  const std::size_t k = std::min(options.k, graph.rows.count());
  const std::size_t beam = std::max(k, options.beam.width);
  // Exact codes are in the order of distances; allowed rows are in that of the codes that are traversed,
  // which may be 4-bit ones. A beam of all rows is an exhaustive search.
  const bool evaluates_beam = options.beam.is_evaluated || beam >= graph.rows.count();
  const ScalarCodec& codec = *graph.rows.codec;
  const bool is_in_order = codec.is_exact() && !(options.allowed.any() && codec.has_nibbles());
  const std::size_t evaluated = is_in_order ? k : evaluates_beam ? beam : std::min(beam, 2 * k + 8);
  Neighbors found{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  const std::uint64_t result_bytes = queries.rows() * k * (sizeof(Id) + sizeof(float));
  check_memory("GraphIndex.search", context, result_bytes);
  const Reservation results(*context.state().budget, result_bytes);
  const auto stream = open_stream(context);
  ProgressMeter progress(context.state().options.progress, context.state().clock, "search", queries.rows());
  dispatch(&Ops::search_graph, "GraphIndex.search", *stream,
           SearchGraphArgs{.graph = graph.prepared->on(context),
                           .queries = queries,
                           .k = k,
                           .beam = beam,
                           .evaluated = evaluated,
                           .allowed = options.allowed,
                           .absent = options.absent,
                           .ids = found.ids.view(),
                           .distances = found.distances.view(),
                           .is_starved = options.is_starved,
                           .progress = &progress});
  progress.finish();
  return found;
}

}  // namespace graph_index

Neighbors GraphIndex::search(const Context& context, RowsView queries, std::size_t k,
                             const GraphSearchOptions& options) const {
  constexpr const char* operation = "GraphIndex.search";
  const State& state = *state_;
  require(k >= 1, "{}: k must be at least 1, got 0", operation);
  require(!options.beam || *options.beam >= k, "{}: beam must be at least k, {}, got {}", operation, k,
          options.beam.value_or(0));
  const index::IndexLock::Reading reading(state.lock, &context.state().cancel);
  const graph_index::SearchedGraph& graph = state.graph;
  graph_index::check_queries(operation, context, queries, graph);
  check_filter(operation, options.filter, queries.rows());
  const DefaultFloatEnvironment environment;
  check_finite(operation, context, queries, 0, "query");
  const std::size_t size = graph.live_count();
  std::optional<Reservation> padded;
  if (k > size) {
    const std::uint64_t bytes = checked_multiply(checked_multiply(queries.rows(), k, "number of results"),
                                                 sizeof(Id) + sizeof(float), "bytes of results");
    check_memory(operation, context, bytes);
    padded.emplace(*context.state().budget, bytes);
  }
  if (size == 0) return padding(queries.rows(), k, metric());
  const std::size_t wanted = std::min(k, size);
  const graph_index::GraphBeam beam = {
      std::min(options.beam.value_or(state.defaults.beam_for(k, size)), std::max(wanted, size)),
      state.defaults.evaluates_beam};
  Neighbors found = options.filter.is_trivial()
                        ? graph_index::search_shared(context, graph, queries, wanted, beam, graph.live.get())
                        : graph_index::search_filtered(context, state, queries, wanted, beam, options.filter);
  if (!graph.rows.ids.empty())
    for (Id& id : std::span(found.ids.data(), queries.rows() * wanted))
      if (id != no_id) id = graph.rows.ids[static_cast<std::size_t>(id)];
  if (state.table)
    for (std::size_t query = 0; query < queries.rows(); ++query)
      graph_index::order_ties(found.ids.row(query), found.distances.row(query));
  check_lost_pages();
  if (wanted == k) return found;
  Neighbors all = padding(queries.rows(), k, metric());
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    std::ranges::copy(found.ids.row(query), all.ids.row(query).begin());
    std::ranges::copy(found.distances.row(query), all.distances.row(query).begin());
  }
  return all;
}

RangeNeighbors GraphIndex::range_search(const Context& context, RowsView queries, float radius,
                                        const GraphSearchOptions& options) const {
  constexpr const char* operation = "GraphIndex.range_search";
  constexpr std::size_t first_k = 16;
  // From this share of the vectors on, exact search is faster.
  constexpr std::size_t max_share = 16;
  const State& state = *state_;
  require(!std::isnan(radius), "{}: radius must be a number, got NaN", operation);
  const index::IndexLock::Reading reading(state.lock, &context.state().cancel);
  const graph_index::SearchedGraph& graph = state.graph;
  graph_index::check_queries(operation, context, queries, graph);
  check_filter(operation, options.filter, queries.rows());
  const DefaultFloatEnvironment environment;
  check_finite(operation, context, queries, 0, "query");
  const std::size_t size = graph.live_count();
  const Context quiet = context.without_progress();
  const float limit = sort_key(metric(), radius);
  const auto allowed = graph_index::allowed_rows(graph, options.filter);
  std::vector<RangeRow> found(queries.rows());
  const auto keep = [&](std::size_t query, Id row, float distance) {
    if (row == no_id || sort_key(metric(), distance) > limit) return;
    const Id id = graph.rows.id_of(static_cast<std::size_t>(row));
    if (!options.filter.allows(id, query)) return;
    found[query].ids.push_back(id);
    found[query].distances.push_back(distance);
  };
  // Queries whose farthest result is within the radius are searched again with a larger k. Lists of their own
  // are applied to what is found.
  std::vector<std::uint32_t> left(size == 0 ? 0 : queries.rows());
  std::iota(left.begin(), left.end(), 0U);
  for (std::size_t k = first_k; !left.empty(); k *= 4) {
    const GatheredRows some(quiet, queries, left);
    if (k * max_share >= size) {
      const RangeNeighbors exact =
          nearwise::range_search(quiet, some.view(), graph.rows.vectors, radius,
                                 {.metric = metric(), .filter = allowed ? allowed->filter : Filter()});
      for (std::size_t i = 0; i < left.size(); ++i)
        for (std::size_t entry = exact.offsets[i]; entry < exact.offsets[i + 1]; ++entry)
          keep(left[i], exact.ids[entry], exact.distances[entry]);
      break;
    }
    const std::size_t width = options.beam ? std::max(*options.beam, k) : state.defaults.beam_for(k, size);
    const Neighbors nearest = graph_index::search_shared(
        quiet, graph, some.view(), k, {width, state.defaults.evaluates_beam}, allowed.get());
    std::vector<std::uint32_t> next;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (nearest.ids(i, k - 1) != no_id && sort_key(metric(), nearest.distances(i, k - 1)) <= limit) {
        next.push_back(left[i]);
        continue;
      }
      for (std::size_t place = 0; place < k; ++place)
        keep(left[i], nearest.ids(i, place), nearest.distances(i, place));
    }
    left = std::move(next);
  }
  check_lost_pages();
  RangeNeighbors result;
  result.offsets.push_back(0);
  for (RangeRow& row : found) {
    if (state.table) graph_index::order_ties(row.ids, row.distances);
    result.ids.insert(result.ids.end(), row.ids.begin(), row.ids.end());
    result.distances.insert(result.distances.end(), row.distances.begin(), row.distances.end());
    result.offsets.push_back(result.ids.size());
  }
  return result;
}

}  // namespace nearwise
