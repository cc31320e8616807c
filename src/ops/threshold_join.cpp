// threshold_join: all pairs of rows within a threshold.
//
// Tiles of rows are searched among themselves and the rows after them, so that a pair is compared once, or
// twice if both rows are in one tile.
#include "ops/threshold_join.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/checked.h"
#include "core/float_environment.h"
#include "ops/check_rows.h"
#include "ops/range_search.h"

namespace nearwise {
namespace {

// Half a tile of every tile's pairs is compared twice: 1/32 of all comparisons. More tiles pack more rows.
constexpr std::size_t tiles = 16;
constexpr std::size_t min_tile_rows = 1024;

// Leaves the pairs with later rows, ascending.
void keep_later_rows(Id row, RangeRow& found) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < found.ids.size(); ++i)
    if (found.ids[i] > row) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return found.ids[i]; });
  RangeRow kept;
  kept.ids.reserve(order.size());
  kept.distances.reserve(order.size());
  for (const std::size_t i : order) {
    kept.ids.push_back(found.ids[i]);
    kept.distances.push_back(found.distances[i]);
  }
  found = std::move(kept);
}

}  // namespace

RangeNeighbors join_rows(const char* operation, const Context& context, const RowsView& rows, RowRange left,
                         RowRange right, float threshold, Metric metric, std::uint64_t kept_free) {
  check_rows(operation, context, rows, rows, {"rows", "rows"});
  require(!std::isnan(threshold), "{}: the threshold must be a number, got NaN", operation);
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  Context::State& state = context.state();
  state.cancel.check();
  RangeAnswers pairs(operation, *state.budget, left.count);
  if (left.count == 0 || right.count == 0) return pairs.concatenated();

  const auto stream = open_stream(context);
  const RowsView queries = rows.slice(left.first, left.count);
  const RowsView later = rows.slice(right.first, right.count);
  const bool is_self_join = left.first == right.first && left.count == right.count;
  const ElementType type = is_self_join ? scan_type(*stream, queries, metric) : ElementType::f32;
  const ScanTypes types = is_self_join ? ScanTypes{type, type} : scan_types(*stream, queries, later, metric);
  const KnnCosts costs = dispatch(&Ops::knn_costs, operation, *stream,
                                  KnnCostsArgs{rows.dim(), range_like_k, metric, types.queries, types.base});
  // Where the two are apart, no pair is compared twice.
  const std::size_t least_tiles = left.end() <= right.first ? 1 : tiles;
  const std::size_t tile_rows = std::min(
      left.count, round_up(std::max(min_tile_rows, divide_up(left.count, least_tiles)), costs.query_granule));
  const KnnShape shape = {tile_rows, right.count, rows.dim(), range_like_k, context.threads()};
  // Room for one answer per row, and its copy, is set aside: how many there are is not known yet.
  const std::uint64_t first_answers = 2 * left.count * (sizeof(Id) + sizeof(float));
  const KnnPlan plan = plan_blocked_knn(
      shape, costs, {state.budget->limit(), state.budget->available(), first_answers + kept_free});
  // first, size: the rows of a tile; base: those that they are compared with.
  const auto each_tile = [&](const auto& work) {
    for (std::size_t first = left.first; first < left.end(); first += plan.query_tile) {
      const std::size_t begin = std::max(first, right.first);
      if (begin < right.end())
        work(first, std::min(plan.query_tile, left.end() - first), RowRange{begin, right.end() - begin});
    }
  };
  std::uint64_t comparisons = 0;
  each_tile(
      [&](std::size_t, std::size_t size, RowRange base) { comparisons += std::uint64_t{size} * base.count; });
  ProgressMeter progress(state.options.progress, state.clock, operation, comparisons);
  const std::vector<float> centre = centre_of(*stream, later, metric);
  each_tile([&](std::size_t first, std::size_t size, RowRange compared) {
    const RowsView tile = rows.slice(first, size);
    const RowsView base = rows.slice(compared.first, compared.count);
    const ExactSearch search = {.context = context,
                                .queries = tile,
                                .base = base,
                                .metric = metric,
                                .plan = plan,
                                .types = types,
                                .centre = centre,
                                .blocks = {},
                                .progress = progress};
    pairs.fill(first - left.first, size, [&](std::span<RangeRow> found) {
      const auto packed = search.prepare_queries(*stream, tile, first);
      search_range_tile(search, threshold, tile, *packed, static_cast<Id>(compared.first), found);
      for (std::size_t i = 0; i < size; ++i) keep_later_rows(static_cast<Id>(first + i), found[i]);
    });
  });
  progress.finish();
  return pairs.concatenated();
}

RangeNeighbors threshold_join(const Context& context, RowsView rows, float threshold,
                              const ThresholdJoinOptions& options) {
  const RowRange all = {0, rows.rows()};
  return join_rows("threshold_join", context, rows, all, all, threshold, options.metric, 0);
}

}  // namespace nearwise
