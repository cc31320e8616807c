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

RangeNeighbors join_rows(const char* operation, const Context& context, const RowsView& rows, float threshold,
                         Metric metric, std::uint64_t kept_free) {
  check_rows(operation, context, rows, rows, {"rows", "rows"});
  require(!std::isnan(threshold), "{}: the threshold must be a number, got NaN", operation);
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  Context::State& state = context.state();
  state.cancel.check();
  const std::size_t count = rows.rows();
  RangeAnswers pairs(operation, *state.budget, count);
  if (count == 0) return pairs.concatenated();

  const auto stream = open_stream(context);
  const ElementType type = scan_type(*stream, rows, metric);
  const KnnCosts costs = dispatch(&Ops::knn_costs, operation, *stream,
                                  KnnCostsArgs{rows.dim(), range_like_k, metric, type, type});
  const std::size_t tile_rows =
      std::min(count, round_up(std::max(min_tile_rows, divide_up(count, tiles)), costs.query_granule));
  const KnnShape shape = {tile_rows, count, rows.dim(), range_like_k, context.threads()};
  // Room for one answer per row, and its copy, is set aside: how many there are is not known yet.
  const std::uint64_t first_answers = 2 * count * (sizeof(Id) + sizeof(float));
  const KnnPlan plan = plan_blocked_knn(
      shape, costs, {state.budget->limit(), state.budget->available(), first_answers + kept_free});
  const auto each_tile = [&](const auto& work) {
    for (std::size_t first = 0; first < count; first += plan.query_tile)
      work(first, std::min(plan.query_tile, count - first));
  };
  std::uint64_t comparisons = 0;
  each_tile(
      [&](std::size_t first, std::size_t size) { comparisons += std::uint64_t{size} * (count - first); });
  ProgressMeter progress(state.options.progress, state.clock, operation, comparisons);
  const std::vector<float> centre = centre_of(*stream, rows, metric);
  each_tile([&](std::size_t first, std::size_t size) {
    const RowsView tile = rows.slice(first, size);
    const RowsView base = rows.slice(first, count - first);
    const ExactSearch search = {.context = context,
                                .queries = tile,
                                .base = base,
                                .metric = metric,
                                .plan = plan,
                                .types = {type, type},
                                .centre = centre,
                                .blocks = {},
                                .progress = progress};
    pairs.fill(first, size, [&](std::span<RangeRow> found) {
      const auto packed = search.prepare_queries(*stream, tile, first);
      search_range_tile(search, threshold, tile, *packed, static_cast<Id>(first), found);
      for (std::size_t i = 0; i < size; ++i) keep_later_rows(static_cast<Id>(first + i), found[i]);
    });
  });
  progress.finish();
  return pairs.concatenated();
}

RangeNeighbors threshold_join(const Context& context, RowsView rows, float threshold,
                              const ThresholdJoinOptions& options) {
  return join_rows("threshold_join", context, rows, threshold, options.metric, 0);
}

}  // namespace nearwise
