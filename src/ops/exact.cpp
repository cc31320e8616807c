// knn: checks the arguments, cuts the work, merges the parts.
#include "nearwise/exact.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <vector>

#include "backend/backend.h"
#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "ops/knn_plan.h"
#include "ops/merge_neighbors.h"

namespace nearwise {
namespace {

// Bounds of the error analysis (docs/algorithms/certified-search.md), far above any use.
constexpr std::size_t most_dim = std::size_t{1} << 20;

void check_arguments(const Context& context, const RowsView& queries, const RowsView& base, std::size_t k,
                     const KnnOptions& options) {
  require(queries.dim() == base.dim(), "knn: queries and base must have the same dimension, given {} and {}",
          queries.dim(), base.dim());
  require(base.dim() >= 1 && base.dim() <= most_dim, "knn: the dimension must be 1 to {}, given {}", most_dim,
          base.dim());
  require(k >= 1, "knn: k must be at least 1, given 0");
  require(k <= base.rows() || options.short_rows == ShortRows::pad,
          "knn: k must be at most the number of base rows, {}, given {} (short_rows = pad fills up the rows)",
          base.rows(), k);
  for (const RowsView& rows : {queries, base})
    require(rows.rows() <= 1 || rows.stride_bytes() >= rows.dim() * element_size(rows.type()),
            "knn: rows must not overlap, a row has {} bytes and the next begins after {}",
            rows.dim() * element_size(rows.type()), rows.stride_bytes());
  for (const RowsView& rows : {queries, base})
    require(rows.place().kind == DeviceKind::cpu || rows.place() == context.place(),
            "knn: rows lie on {}:{}, which is neither the host nor the context's device",
            name(rows.place().kind), rows.place().ordinal);
}

// A point in the middle of the data: the mean of a few evenly spaced rows. Any point is correct. Rounded to about a
// hundredth of the data's spread, so that rows of few significant bits (whole numbers, say) still have few when it has
// been subtracted.
std::vector<float> sample_centre(const RowsView& base) {
  constexpr std::size_t most_samples = 256;
  const std::size_t samples = std::min(most_samples, base.rows());
  std::vector<double> sum(base.dim(), 0);
  std::vector<double> row(base.dim());
  for (std::size_t i = 0; i < samples; ++i) {
    row_to_double(base, base.rows() / samples * i, row.data());
    for (std::size_t j = 0; j < base.dim(); ++j) sum[j] += row[j];
  }
  double spread = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    row_to_double(base, base.rows() / samples * i, row.data());
    for (std::size_t j = 0; j < base.dim(); ++j)
      spread = std::max(spread, std::abs(row[j] - sum[j] / static_cast<double>(samples)));
  }
  const double grid = std::isfinite(spread) && spread > 0 ? std::ldexp(1.0, std::ilogb(spread) - 6) : 0;
  std::vector<float> centre(base.dim());
  for (std::size_t j = 0; j < base.dim(); ++j) {
    const double mean = sum[j] / static_cast<double>(samples);
    const auto rounded = static_cast<float>(grid > 0 ? std::nearbyint(mean / grid) * grid : mean);
    centre[j] = std::isfinite(rounded) ? rounded : 0;  // non-finite rows are refused later, by number
  }
  return centre;
}

struct Search {
  const Context& context;
  RowsView queries;
  RowsView base;
  std::size_t k;
  Metric metric;
  KnnPlan plan;
  std::vector<float> centre;
  ProgressMeter& progress;
};

struct Shard {
  std::size_t first_row;
  RowsView rows;
};

std::vector<Shard> split(const RowsView& base, std::size_t count) {
  std::vector<Shard> shards;
  for (std::size_t i = 0; i < count; ++i) {
    // base.rows() * i may exceed 64 bits only beyond 2^52 rows and 4096 shards.
    const std::size_t begin = base.rows() * i / count;
    const std::size_t end = base.rows() * (i + 1) / count;
    shards.push_back({begin, base.slice(begin, end - begin)});
  }
  return shards;
}

void search_shard(const Search& search, const Shard& shard, const RowsView& queries,
                  const PreparedRows& prepared, MatrixView<Id> ids, MatrixView<float> distances) {
  const auto stream = open_stream(search.context);
  const auto best = dispatch(&Ops::start_top_k, "start_top_k", *stream,
                             TopKArgs{prepared, queries, search.k, search.metric});
  for (std::size_t first = 0; first < shard.rows.rows(); first += search.plan.base_block) {
    const std::size_t count = std::min(search.plan.base_block, shard.rows.rows() - first);
    const auto block = dispatch(&Ops::prepare_rows, "prepare_rows", *stream,
                                PrepareArgs{.rows = shard.rows.slice(first, count),
                                            .role = RowsRole::base,
                                            .against = queries.type(),
                                            .metric = search.metric,
                                            .centre = search.centre,
                                            .first_row = shard.first_row + first});
    dispatch(&Ops::knn_block, "knn_block", *stream,
             KnnBlockArgs{.queries = prepared,
                          .block = *block,
                          .best = *best,
                          .base = shard.rows,
                          .first_row = first,
                          .block_rows = count,
                          .progress = &search.progress});
  }
  dispatch(&Ops::finish_top_k, "finish_top_k", *stream,
           FinishTopKArgs{*best, static_cast<Id>(shard.first_row), ids, distances});
}

// Searches every shard, at once if there are several, and merges their answers.
template <typename SearchOne>
void search_shards(const Search& search, std::size_t queries, MatrixView<Id> ids, MatrixView<float> distances,
                   const SearchOne& search_one) {
  const std::vector<Shard> shards = split(search.base, search.plan.shards);
  if (shards.size() == 1) {
    search_one(shards[0], ids, distances);
    return;
  }
  MemoryBudget& budget = *search.context.state().budget;
  const std::size_t entries = checked_multiply(queries, search.k, "knn");
  std::vector<Buffer<Id>> shard_ids;
  std::vector<Buffer<float>> shard_distances;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shard_ids.emplace_back(budget, entries);
    shard_distances.emplace_back(budget, entries);
  }
  // Errors are kept per shard so that the one reported (the lowest bad row) does not depend on timing.
  std::vector<std::exception_ptr> errors(shards.size());
  search.context.state().threads->for_each(shards.size(), [&](std::size_t i) {
    try {
      search_one(shards[i], MatrixView<Id>(shard_ids[i].data(), queries, search.k),
                 MatrixView<float>(shard_distances[i].data(), queries, search.k));
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  std::vector<NeighborsView> parts;
  for (std::size_t i = 0; i < shards.size(); ++i)
    parts.push_back(
        {{shard_ids[i].data(), queries, search.k}, {shard_distances[i].data(), queries, search.k}});
  merge_neighbors(*search.context.state().threads, search.metric, parts, ids, distances);
}

void search_direct(const Search& search, MatrixView<Id> ids, MatrixView<float> distances) {
  search_shards(search, search.queries.rows(), ids, distances,
                [&](const Shard& shard, MatrixView<Id> shard_ids, MatrixView<float> shard_distances) {
                  const auto stream = open_stream(search.context);
                  dispatch(&Ops::knn_direct, "knn_direct", *stream,
                           KnnDirectArgs{.queries = search.queries,
                                         .base = shard.rows,
                                         .metric = search.metric,
                                         .k = search.k,
                                         .id_offset = static_cast<Id>(shard.first_row),
                                         .ids = shard_ids,
                                         .distances = shard_distances,
                                         .progress = &search.progress});
                });
}

void search_blocked(const Search& search, MatrixView<Id> ids, MatrixView<float> distances) {
  const auto stream = open_stream(search.context);
  for (std::size_t first = 0; first < search.queries.rows(); first += search.plan.query_tile) {
    const std::size_t count = std::min(search.plan.query_tile, search.queries.rows() - first);
    const RowsView queries = search.queries.slice(first, count);
    const auto prepared = dispatch(&Ops::prepare_rows, "prepare_rows", *stream,
                                   PrepareArgs{.rows = queries,
                                               .role = RowsRole::queries,
                                               .against = search.base.type(),
                                               .metric = search.metric,
                                               .centre = search.centre,
                                               .first_row = first});
    search_shards(search, count, ids.slice(first, count), distances.slice(first, count),
                  [&](const Shard& shard, MatrixView<Id> shard_ids, MatrixView<float> shard_distances) {
                    search_shard(search, shard, queries, *prepared, shard_ids, shard_distances);
                  });
  }
}

}  // namespace

Neighbors knn(const Context& context, RowsView queries, RowsView base, std::size_t k,
              const KnnOptions& options) {
  check_arguments(context, queries, base, k, options);
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  Context::State& state = context.state();
  state.cancel.check();
  const std::size_t result_bytes = checked_multiply(checked_multiply(queries.rows(), k, "knn: queries * k"),
                                                    sizeof(Id) + sizeof(float), "knn: the result's bytes");
  const auto stream = open_stream(context);
  const KnnCosts costs = dispatch(&Ops::knn_costs, "knn_costs", *stream,
                                  KnnCostsArgs{base.dim(), k, options.metric, queries.type(), base.type()});
  const KnnShape shape = {queries.rows(), base.rows(), base.dim(), k, context.threads()};
  const KnnPlan plan =
      plan_knn(shape, costs, {state.budget->limit(), state.budget->available(), result_bytes});

  const Reservation reservation(*state.budget, result_bytes);
  Neighbors result{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  if (queries.rows() == 0) return result;
  if (base.rows() == 0) {
    std::fill_n(result.ids.data(), queries.rows() * k, no_id);
    std::fill_n(result.distances.data(), queries.rows() * k, padding_distance(options.metric));
    return result;
  }
  ProgressMeter progress(state.options.progress, state.clock, "knn",
                         std::uint64_t{queries.rows()} * base.rows());
  const bool centred = options.metric == Metric::sqeuclidean || options.metric == Metric::euclidean;
  const Search search = {
      context, queries, base, k, options.metric, plan, centred ? sample_centre(base) : std::vector<float>(),
      progress};
  if (search.plan.direct)
    search_direct(search, result.ids.view(), result.distances.view());
  else
    search_blocked(search, result.ids.view(), result.distances.view());
  progress.finish();
  return result;
}

}  // namespace nearwise
