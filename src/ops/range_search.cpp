// range_search: all rows within a radius.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/checked.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "ops/check_rows.h"
#include "ops/filter/filtered_search.h"
#include "ops/range_search.h"

namespace nearwise {

void sort_range_row(Metric metric, RangeRow& row) {
  std::vector<std::size_t> order(row.ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::size_t left, std::size_t right) {
    const float left_key = sort_key(metric, row.distances[left]);
    const float right_key = sort_key(metric, row.distances[right]);
    return left_key < right_key || (left_key == right_key && row.ids[left] < row.ids[right]);
  });
  RangeRow sorted;
  for (const std::size_t i : order) {
    sorted.ids.push_back(row.ids[i]);
    sorted.distances.push_back(row.distances[i]);
  }
  row = std::move(sorted);
}

void search_range_tile(const ExactSearch& search, float radius, const RowsView& tile,
                       const PreparedRows& prepared, Id id_offset, std::span<RangeRow> rows) {
  const std::vector<Shard> shards = search.shards();
  std::vector<std::vector<RangeRow>> parts(shards.size());
  for_each_shard(search.context, shards.size(), [&](std::size_t i) {
    parts[i].resize(tile.rows());
    BlocksInFlight blocks;
    const auto stream = open_stream(search.context);
    const auto found = dispatch(&Ops::start_range, "range_search", *stream,
                                RangeArgs{prepared, tile, radius, search.metric, {}});
    search.scan(*stream, shards[i], prepared, *found, blocks);
    dispatch(&Ops::finish_range, "finish_range", *stream,
             FinishRangeArgs{*found, id_offset + static_cast<Id>(shards[i].first_row), parts[i]});
  });
  for (std::size_t query = 0; query < tile.rows(); ++query) {
    rows[query] = std::move(parts[0][query]);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const RangeRow& part = parts[i][query];
      rows[query].ids.insert(rows[query].ids.end(), part.ids.begin(), part.ids.end());
      rows[query].distances.insert(rows[query].distances.end(), part.distances.begin(), part.distances.end());
    }
    if (parts.size() > 1) sort_range_row(search.metric, rows[query]);
  }
}

void RangeAnswers::fill(std::size_t first, std::size_t count,
                        const std::function<void(std::span<RangeRow>)>& search) {
  try {
    const std::span<RangeRow> filled = std::span(rows_).subspan(first, count);
    search(filled);
    std::size_t answers = 0;
    for (const RangeRow& row : filled) answers += row.ids.size();
    // Twice: the rows and the concatenated result.
    const std::uint64_t bytes = 2 * answers * (sizeof(Id) + sizeof(float));
    reservations_.emplace_back(budget_, bytes);
    bytes_ += bytes;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory || budget_.limit() == 0) throw;
    refuse(first);
  }
}

void RangeAnswers::refuse(std::size_t done) const {
  if (done == 0)
    fail(ErrorCode::out_of_memory,
         "{}: answers of the first queries exceed the memory limit of {}: a smaller radius, or a "
         "larger limit, is needed",
         operation_, format_bytes(budget_.limit()));
  const double share = static_cast<double>(rows_.size()) / static_cast<double>(done);
  const auto all = static_cast<std::uint64_t>(share * static_cast<double>(bytes_));
  fail(ErrorCode::out_of_memory,
       "{}: answers exceed the memory limit of {}: those of {} of {} queries take {}, about {} "
       "would suffice",
       operation_, format_bytes(budget_.limit()), done, rows_.size(), format_bytes(bytes_),
       format_bytes(budget_.limit() + all));
}

RangeNeighbors RangeAnswers::concatenated() const {
  RangeNeighbors result;
  result.offsets.assign(rows_.size() + 1, 0);
  for (std::size_t query = 0; query < rows_.size(); ++query)
    result.offsets[query + 1] = result.offsets[query] + rows_[query].ids.size();
  result.ids.reserve(result.offsets.back());
  result.distances.reserve(result.offsets.back());
  for (const RangeRow& row : rows_) {
    result.ids.insert(result.ids.end(), row.ids.begin(), row.ids.end());
    result.distances.insert(result.distances.end(), row.distances.begin(), row.distances.end());
  }
  return result;
}

RangeNeighbors search_range_rows(const Context& context, const RowsView& queries, const RowsView& base,
                                 float radius, Metric metric, const PreparedBase* prepared,
                                 const RowSelection& selection) {
  Context::State& state = context.state();
  state.cancel.check();
  RangeAnswers answers("range_search", *state.budget, queries.rows());
  if (queries.rows() == 0 || base.rows() == 0) return answers.concatenated();

  const auto stream = open_stream(context);
  const ScanTypes types =
      prepared != nullptr ? prepared->types_with(queries) : scan_types(*stream, queries, base, metric);
  const KnnCosts costs = dispatch(&Ops::knn_costs, "knn_costs", *stream,
                                  KnnCostsArgs{base.dim(), range_like_k, metric, types.queries, types.base});
  const KnnShape shape = {queries.rows(), base.rows(), base.dim(), range_like_k, context.threads()};
  // Room for one answer per query, and its copy, is set aside: how many there are is not known yet.
  const std::uint64_t first_answers = 2 * queries.rows() * (sizeof(Id) + sizeof(float));
  const KnnPlan plan =
      plan_blocked_knn(shape, costs, {state.budget->limit(), state.budget->available(), first_answers});
  ProgressMeter progress(state.options.progress, state.clock, "range_search",
                         std::uint64_t{queries.rows()} * base.rows());
  const std::vector<float> own_centre =
      prepared == nullptr ? centre_of(*stream, base, metric) : std::vector<float>();
  const ExactSearch search = {
      .context = context,
      .queries = queries,
      .base = base,
      .metric = metric,
      .plan = plan,
      .types = types,
      .centre = prepared != nullptr ? prepared->centre : own_centre,
      .blocks = prepared != nullptr ? std::span<const Block>(prepared->blocks) : std::span<const Block>(),
      .progress = progress,
      .selection = selection};
  for (std::size_t first = 0; first < queries.rows(); first += plan.query_tile) {
    const std::size_t count = std::min(plan.query_tile, queries.rows() - first);
    answers.fill(first, count, [&](std::span<RangeRow> rows) {
      const RowsView tile = queries.slice(first, count);
      const auto packed = search.prepare_queries(*stream, tile, first);
      search_range_tile(search, radius, tile, *packed, 0, rows);
    });
  }
  progress.finish();
  return answers.concatenated();
}

RangeNeighbors search_range(const Context& context, const RowsView& queries, const RowsView& base,
                            float radius, const RangeOptions& options, const PreparedBase* prepared) {
  check_rows("range_search", context, queries, base);
  require(!std::isnan(radius), "range_search: the radius must be a number, got NaN");
  check_filter("range_search", options.filter, queries.rows());
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  if (options.filter.is_trivial())
    return search_range_rows(context, queries, base, radius, options.metric, prepared, {});
  return search_range_allowed(context, queries, base, radius, options.metric, prepared, options.filter);
}

RangeNeighbors range_search(const Context& context, RowsView queries, RowsView base, float radius,
                            const RangeOptions& options) {
  return search_range(context, queries, base, radius, options, nullptr);
}

}  // namespace nearwise
