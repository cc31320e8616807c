// knn: argument checks, tiling, merging of shards.
#include <algorithm>
#include <vector>

#include "core/checked.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "ops/check_rows.h"
#include "ops/exact_knn.h"
#include "ops/filter/filtered_search.h"
#include "ops/merge_neighbors.h"

namespace nearwise {
namespace {

// Searches all shards concurrently and merges their answers.
template <typename SearchOne>
void search_shards(const ExactSearch& search, std::size_t k, std::size_t queries, MatrixView<Id> ids,
                   MatrixView<float> distances, const SearchOne& search_one) {
  const std::vector<Shard> shards = search.shards();
  if (shards.size() == 1) {
    search_one(shards[0], ids, distances);
    return;
  }
  MemoryBudget& budget = *search.context.state().budget;
  const std::size_t entries = checked_multiply(queries, k, "knn");
  std::vector<Buffer<Id>> shard_ids;
  std::vector<Buffer<float>> shard_distances;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shard_ids.emplace_back(budget, entries);
    shard_distances.emplace_back(budget, entries);
  }
  for_each_shard(search.context, shards.size(), [&](std::size_t i) {
    search_one(shards[i], MatrixView<Id>(shard_ids[i].data(), queries, k),
               MatrixView<float>(shard_distances[i].data(), queries, k));
  });
  std::vector<NeighborsView> parts;
  for (std::size_t i = 0; i < shards.size(); ++i)
    parts.push_back({{shard_ids[i].data(), queries, k}, {shard_distances[i].data(), queries, k}});
  merge_neighbors(*search.context.state().threads, search.metric, parts, ids, distances);
}

void search_direct(const ExactSearch& search, std::size_t k, MatrixView<Id> ids,
                   MatrixView<float> distances) {
  const RowSelection& selection = search.selection;
  search_shards(search, k, search.queries.rows(), ids, distances,
                [&](const Shard& shard, MatrixView<Id> shard_ids, MatrixView<float> shard_distances) {
                  // The shard of a list of rows is a part of the list.
                  const bool is_list = selection.rows.has_value();
                  KnnDirectArgs args = {
                      .queries = search.queries,
                      .base = is_list ? search.base : shard.rows,
                      .metric = search.metric,
                      .k = k,
                      .id_offset = is_list ? 0 : static_cast<Id>(shard.first_row),
                      .ids = shard_ids,
                      .distances = shard_distances,
                      .denied = is_list ? selection.denied : selection.denied.from_row(shard.first_row),
                      .progress = &search.progress};
                  if (is_list) args.rows = selection.rows->subspan(shard.first_row, shard.rows.rows());
                  const auto stream = open_stream(search.context);
                  dispatch(&Ops::knn_direct, "knn_direct", *stream, args);
                });
}

void search_blocked(const ExactSearch& search, std::size_t k, MatrixView<Id> ids,
                    MatrixView<float> distances) {
  const auto stream = open_stream(search.context);
  for (std::size_t first = 0; first < search.queries.rows(); first += search.plan.query_tile) {
    const std::size_t count = std::min(search.plan.query_tile, search.queries.rows() - first);
    const RowsView tile = search.queries.slice(first, count);
    const auto prepared = search.prepare_queries(*stream, tile, first);
    search_shards(
        search, k, count, ids.slice(first, count), distances.slice(first, count),
        [&](const Shard& shard, MatrixView<Id> shard_ids, MatrixView<float> shard_distances) {
          BlocksInFlight blocks;
          const auto own_stream = open_stream(search.context);
          const auto found =
              dispatch(&Ops::start_top_k, "start_top_k", *own_stream,
                       TopKArgs{*prepared, tile, shard.rows.rows(), k, search.metric,
                                search.selection.denied.from_query(first, count).from_row(shard.first_row)});
          search.scan(*own_stream, shard, *prepared, *found, blocks);
          dispatch(&Ops::finish_top_k, "finish_top_k", *own_stream,
                   FinishTopKArgs{*found, static_cast<Id>(shard.first_row), shard_ids, shard_distances});
        });
  }
}

// Removes id q from row q, or the last entry if id q is missing because k others are as near.
Neighbors without_self(const Threads& threads, const Neighbors& found) {
  Neighbors rest{Matrix<Id>(found.ids.rows(), found.ids.cols() - 1),
                 Matrix<float>(found.ids.rows(), found.ids.cols() - 1)};
  threads.for_each(found.ids.rows(), [&](std::size_t query) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < found.ids.cols() && out < rest.ids.cols(); ++i) {
      if (found.ids(query, i) == static_cast<Id>(query)) continue;
      rest.ids(query, out) = found.ids(query, i);
      rest.distances(query, out++) = found.distances(query, i);
    }
  });
  return rest;
}

std::size_t result_bytes(std::size_t queries, std::size_t k) {
  return checked_multiply(checked_multiply(queries, k, "knn: queries * k"), sizeof(Id) + sizeof(float),
                          "knn: the result's bytes");
}

// Few queries are limited by memory, which packed rows need less of. A small base is in the caches anyway.
bool is_worth_reading_packed(const KnnShape& shape, const KnnCosts& costs, const KnnMemory& memory,
                             const RowsView& base) {
  constexpr std::uint64_t least_bytes = 8 << 20;
  const std::uint64_t row_bytes = base.dim() * element_size(base.type());
  return 3 * costs.bytes_per_base_row <= 2 * row_bytes && shape.base_rows * row_bytes >= least_bytes &&
         costs.fixed_bytes <= memory.available / 8;
}

}  // namespace

void check_k(const char* operation, std::size_t k, std::size_t base_rows, const KnnOptions& options) {
  require(k >= 1, "{}: k must be at least 1, got 0", operation);
  const std::size_t most = options.exclude_self && base_rows > 0 ? base_rows - 1 : base_rows;
  require(k <= most || options.short_rows == ShortRows::pad || !options.filter.is_trivial(),
          "{}: k must be at most the number of {}base rows, {}, got {} (short_rows = pad fills up the rows)",
          operation, options.exclude_self ? "other " : "", most, k);
}

std::uint64_t least_knn_bytes(const Context& context, const RowsView& queries, const RowsView& base,
                              std::size_t k, Metric metric) {
  const KnnShape shape = {queries.rows(), base.rows(), base.dim(), k, context.threads()};
  const bool may_be_direct = context.state().backend.ops.knn_direct != nullptr;
  const auto stream = open_stream(context);
  std::uint64_t least = 0;
  // The rows decide by which of these they are scanned.
  for (const ScanTypes& types :
       {ScanTypes{queries.type(), base.type()}, ScanTypes{ElementType::u8, ElementType::u8}})
    for (const bool coarse : {false, true}) {
      if (coarse && k > max_coarse_k) continue;
      const KnnCosts costs = dispatch(&Ops::knn_costs, "knn_costs", *stream,
                                      KnnCostsArgs{base.dim(), k, metric, types.queries, types.base, coarse});
      least = std::max(least, least_plan_bytes(shape, costs, may_be_direct));
    }
  return result_bytes(queries.rows(), k) + least;
}

Neighbors search_rows(const Context& context, const RowsView& queries, const RowsView& base, std::size_t k,
                      Metric metric, const PreparedBase* prepared, const RowSelection& selection,
                      std::uint64_t more_bytes) {
  Context::State& state = context.state();
  state.cancel.check();
  const std::size_t rows = selection.rows ? selection.rows->size() : base.rows();
  const std::uint64_t bytes = result_bytes(queries.rows(), k) + more_bytes;
  const auto stream = open_stream(context);
  ScanTypes types = {queries.type(), base.type()};
  if (prepared != nullptr)
    types = prepared->types_with(queries);
  else if (!selection.rows && queries.rows() > max_direct_queries)
    types = scan_types(*stream, queries, base, metric);
  bool coarse = prepared != nullptr || (k <= max_coarse_k && suits_coarse_scores(queries, base, metric));
  const auto costs_of = [&] {
    return dispatch(&Ops::knn_costs, "knn_costs", *stream,
                    KnnCostsArgs{base.dim(), k, metric, types.queries, types.base, coarse});
  };
  KnnCosts costs = costs_of();
  if (coarse && prepared == nullptr && rows < costs.min_coarse_rows) {
    coarse = false;
    costs = costs_of();
  }
  const KnnShape shape = {queries.rows(), rows, base.dim(), k, context.threads()};
  const KnnMemory memory = {state.budget->limit(), state.budget->available(), bytes};
  const bool may_be_direct = state.backend.ops.knn_direct != nullptr && !selection.allowed.any();
  const bool packed_is_shorter = prepared != nullptr && is_worth_reading_packed(shape, costs, memory, base);
  const KnnPlan plan = may_be_direct && !packed_is_shorter ? plan_knn(shape, costs, memory)
                                                           : plan_blocked_knn(shape, costs, memory);

  const Reservation reservation(*state.budget, bytes);
  Neighbors result{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  if (rows == 0) {
    std::fill_n(result.ids.data(), queries.rows() * k, no_id);
    std::fill_n(result.distances.data(), queries.rows() * k, padding_distance(metric));
  } else if (queries.rows() != 0) {
    ProgressMeter progress(state.options.progress, state.clock, "knn", std::uint64_t{queries.rows()} * rows);
    const std::vector<float> own_centre =
        prepared == nullptr && !plan.direct ? centre_of(*stream, base, metric) : std::vector<float>();
    const ExactSearch search = {.context = context,
                                .queries = queries,
                                // The shards of a list of rows are parts of the list.
                                .base = base,
                                .metric = metric,
                                .plan = plan,
                                .types = types,
                                .centre = prepared != nullptr ? prepared->centre : own_centre,
                                .blocks = {},
                                .progress = progress,
                                .selection = selection,
                                .coarse = coarse};
    if (plan.direct) {
      search_direct(search, k, result.ids.view(), result.distances.view());
    } else {
      ExactSearch blocked = search;
      if (prepared != nullptr) blocked.blocks = prepared->blocks;
      search_blocked(blocked, k, result.ids.view(), result.distances.view());
    }
    progress.finish();
  }
  return result;
}

Neighbors search_knn(const Context& context, const RowsView& queries, const RowsView& base, std::size_t k,
                     const KnnOptions& options, const PreparedBase* prepared) {
  check_rows("knn", context, queries, base);
  check_k("knn", k, base.rows(), options);
  require(!options.exclude_self || queries.rows() == base.rows(),
          "knn: exclude_self needs equal queries and base, got {} and {} rows", queries.rows(), base.rows());
  check_filter("knn", options.filter, queries.rows());
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  // With exclude_self, one more neighbour is searched, and the result copied.
  const std::size_t wanted = k + (options.exclude_self ? 1 : 0);
  const std::uint64_t copy_bytes = options.exclude_self ? result_bytes(queries.rows(), k) : 0;
  Neighbors found =
      options.filter.is_trivial()
          ? search_rows(context, queries, base, wanted, options.metric, prepared, {}, copy_bytes)
          : search_allowed(context, queries, base, wanted, options.metric, prepared, options.filter);
  if (!options.exclude_self) return found;
  const Reservation reservation(*context.state().budget, result_bytes(queries.rows(), wanted) + copy_bytes);
  return without_self(*context.state().threads, found);
}

Neighbors knn(const Context& context, RowsView queries, RowsView base, std::size_t k,
              const KnnOptions& options) {
  return search_knn(context, queries, base, k, options, nullptr);
}

}  // namespace nearwise
