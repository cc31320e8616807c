// Searches of inverted files: the lists to look at by exact search among the centroids, then the rows in
// them.
#include <algorithm>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "core/progress.h"
#include "index/ivf_state.h"
#include "nearwise/exact.h"
#include "ops/check_rows.h"
#include "ops/knn_plan.h"

namespace nearwise {
namespace {

// Queries that are searched at a time, at most: enough to share the work on a list, and progress can be seen.
constexpr std::size_t most_queries = 16384;

void check_search(const Context& context, const Ivf& index, const RowsView& queries, std::size_t k,
                  const IvfSearchOptions& options, Id next_id) {
  require(k >= 1, "search: k must be at least 1, given 0");
  check_rows("search", context, queries, index.centroids());
  require(queries.place().kind == DeviceKind::cpu, "search: queries must be on the host, given queries on {}",
          name(queries.place()));
  require(options.probes <= index.lists(), "search: probes of at most {} lists expected, given {}",
          index.lists(), options.probes);
  if (options.rows.rows() == 0) return;
  check_rows("search", context, options.rows, queries);
  require(options.candidates == 0 || options.candidates >= k,
          "search: at least k = {} candidates expected, given {}", k, options.candidates);
  require(static_cast<std::uint64_t>(next_id) <= options.rows.rows(),
          "search: `rows` must hold a row for every id, given {} rows for ids to {}", options.rows.rows(),
          next_id - 1);
  require(options.rows.rows() <= max_shard_rows, "search: `rows` of at most {} rows expected, given {}",
          max_shard_rows, options.rows.rows());
}

}  // namespace

Neighbors Ivf::search(const Context& context, RowsView queries, std::size_t k,
                      const IvfSearchOptions& options) const {
  const State& state = *state_;
  check_search(context, *this, queries, k, options, state.next_id);
  const DefaultFloatEnvironment environment;
  const Context::State& caller = context.state();
  caller.cancel.check();
  const bool rerank = options.rows.rows() != 0;
  const std::size_t probes = options.probes != 0 ? options.probes : state.probes;
  const std::size_t candidates =
      !rerank ? k : std::max(k, options.candidates != 0 ? options.candidates : state.candidates_for(k));
  const auto stream = open_stream(context);
  const ListCodec codec = state.codec();
  const ListSearchCosts costs =
      dispatch(&Ops::list_search_costs, "list_search_costs", *stream,
               ListSearchShape{.dim = dim(),
                               .metric = state.metric,
                               .query_type = queries.type(),
                               .row_type = codec.type,
                               // No list of candidates is longer than what there is.
                               .candidates = std::min(candidates, std::max<std::size_t>(size(), 1)),
                               .probes = probes,
                               .lists = lists(),
                               .rows = size(),
                               .codebooks = codec.is_additive() ? codec.parts() : 0});
  const bool caches_norms =
      state.norms && caller.place.kind == DeviceKind::cpu && state.norms->reserve(size());
  const std::uint64_t result_bytes = checked_multiply(
      checked_multiply(queries.rows(), k, "search: queries * k"), sizeof(Id) + sizeof(float), "search");
  // The answer of the search among centroids is there at the same time.
  const std::uint64_t per_query = costs.bytes_per_query + probes * (sizeof(Id) + sizeof(float));
  const std::uint64_t available = caller.budget->available();
  const std::uint64_t least = result_bytes + costs.fixed_bytes + 64 * per_query;
  if (least > available)
    fail(ErrorCode::out_of_memory, "search: the memory limit of {} bytes is too small, {} would do",
         caller.budget->limit(), caller.budget->used() + least);
  const std::size_t tile = static_cast<std::size_t>(
      std::min<std::uint64_t>(most_queries, (available - result_bytes - costs.fixed_bytes) / per_query));

  const Reservation reservation(*caller.budget, result_bytes);
  Neighbors result{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  ProgressMeter progress(caller.options.progress, caller.clock, "search", queries.rows());
  // A copy only for who is told of progress: a search for one query is short.
  const Context quiet = caller.options.progress ? context.without_progress() : context;
  const std::span<const ListView> views = state.rows.views();
  for (std::size_t first = 0; first < queries.rows(); first += tile) {
    const std::size_t count = std::min(tile, queries.rows() - first);
    const RowsView part = queries.slice(first, count);
    const Neighbors nearest = knn(quiet, part, state.centroids, probes, {.metric = state.metric});
    const std::span<const Id> probed(nearest.ids.data(), count * probes);
    if (caches_norms)
      state.norms->make(*caller.threads, *caller.budget,
                        {codec, *state.tables, state.metric, state.centre, views}, probed);
    dispatch(&Ops::list_search, "list_search", *stream,
             ListSearchArgs{.queries = part,
                            .probes = probed,
                            .lists = views,
                            .codec = codec,
                            .metric = state.metric,
                            .centre = state.centre,
                            .norms = caches_norms ? state.norms->pointers()
                                                  : std::span<const std::atomic<const float*>>(),
                            .k = k,
                            .candidates = std::min(candidates, std::max<std::size_t>(size(), 1)),
                            .rows = options.rows,
                            .ids = result.ids.view().slice(first, count),
                            .distances = result.distances.view().slice(first, count)});
    progress.add(count);
  }
  progress.finish();
  return result;
}

}  // namespace nearwise
