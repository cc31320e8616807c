// Searches of inverted files: exact search for the nearest centroids, then a scan of their lists.
#include <algorithm>
#include <cstring>
#include <vector>

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

constexpr const char* search_name = "Ivf.search";
// Queries searched at a time: enough to share the scan of a list, few enough for regular progress reports.
constexpr std::size_t max_queries = 16384;

void check_search(const Context& context, const Ivf& index, const RowsView& queries, std::size_t k,
                  const IvfSearchOptions& options) {
  require(k >= 1, "{}: k must be at least 1, got 0", search_name);
  check_rows(search_name, context, queries, index.centroids(), {"queries", "index"});
  require(queries.place().kind == DeviceKind::cpu, "{}: queries must be on the host, got queries on {}",
          search_name, name(queries.place()));
  const std::size_t probes = options.probes.value_or(1);
  require(probes >= 1 && probes <= index.lists(), "{}: probes must be 1 to {}, got {}", search_name,
          index.lists(), probes);
  require(options.candidates.value_or(k) >= k, "{}: candidates must be at least k = {}, got {}", search_name,
          k, options.candidates.value_or(k));
  if (options.rerank.rows() == 0) return;
  check_rows(search_name, context, options.rerank, queries, {"rerank", "queries"});
  require(static_cast<std::uint64_t>(index.next_id()) <= options.rerank.rows(),
          "{}: `rerank` must have a row for every id, got {} rows for ids up to {}", search_name,
          options.rerank.rows(), index.next_id() - 1);
  require(options.rerank.rows() <= max_shard_rows, "{}: `rerank` must have at most {} rows, got {}",
          search_name, max_shard_rows, options.rerank.rows());
}

}  // namespace

namespace {

// Refuses rows that are not those of the index: most of a sample must belong to the lists that they are in.
// Rows may be rounded, so that a few may not.
void check_rerank_rows(const Context& context, const Ivf& index, const IvfInternals::State& state,
                       const RowsView& rows) {
  if (index.size() == 0 || state.checked_rows.exchange(rows.data()) == rows.data()) return;
  constexpr std::size_t most = 64;
  const std::size_t count = std::min(most, index.size());
  const std::size_t row_bytes = rows.dim() * element_size(rows.type());
  std::vector<std::byte> sample(count * row_bytes);
  std::vector<std::size_t> lists(count);
  std::size_t list = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = i * index.size() / count;
    while (begin + state.rows.view(list).rows <= place) begin += state.rows.view(list++).rows;
    const Id id = state.rows.view(list).ids[place - begin];
    std::memcpy(sample.data() + i * row_bytes, rows.row(static_cast<std::size_t>(id)), row_bytes);
    lists[i] = list;
  }
  const Neighbors nearest =
      knn(context.without_progress(), {sample.data(), rows.type(), count, rows.dim(), row_bytes},
          state.centroids, 1, {.metric = state.metric});
  std::size_t right = 0;
  for (std::size_t i = 0; i < count; ++i)
    right += static_cast<std::size_t>(nearest.ids(i, 0)) == lists[i] ? 1 : 0;
  if (4 * right >= 3 * count) return;
  state.checked_rows = nullptr;
  fail(ErrorCode::invalid_argument,
       "{}: `rerank` must hold the vectors of the index by id: {} of {} rows do not belong to the list that "
       "they are in",
       search_name, count - right, count);
}

}  // namespace

Neighbors Ivf::search(const Context& context, RowsView queries, std::size_t k,
                      const IvfSearchOptions& options) const {
  const State& state = *state_;
  check_search(context, *this, queries, k, options);
  const DefaultFloatEnvironment environment;
  const Context::State& caller = context.state();
  caller.cancel.check();
  if (options.rerank.rows() != 0 && options.rerank.place().kind == DeviceKind::cpu)
    check_rerank_rows(context, *this, state, options.rerank);
  const RerankVectors vectors = options.rerank.rows() != 0 ? RerankVectors{.rows = options.rerank}
                                : options.codes_only       ? RerankVectors()
                                                           : state.rerank_vectors();
  const bool rerank = vectors.any();
  const std::size_t probes = options.probes.value_or(state.probes);
  const std::size_t candidates =
      rerank ? std::max(k, options.candidates.value_or(state.candidates_for(k))) : k;
  const auto stream = open_stream(context);
  const ListCodec codec = state.view();
  const ListSearchCosts costs =
      dispatch(&Ops::list_search_costs, "list_search_costs", *stream,
               ListSearchShape{.dim = dim(),
                               .metric = state.metric,
                               .query_type = queries.type(),
                               .row_type = codec.type,
                               // There are no more candidates than vectors.
                               .candidates = std::min(candidates, std::max<std::size_t>(size(), 1)),
                               .probes = probes,
                               .lists = lists(),
                               .rows = size(),
                               .codebooks = codec.encoding == ListEncoding::lsq ? codec.parts() : 0});
  const bool caches_norms =
      state.norms && caller.place.kind == DeviceKind::cpu && state.norms->reserve(size());
  const std::uint64_t result_bytes =
      checked_multiply(checked_multiply(queries.rows(), k, "Ivf.search: queries * k"),
                       sizeof(Id) + sizeof(float), search_name);
  // Includes the result of the search for centroids.
  const std::uint64_t per_query = costs.bytes_per_query + probes * (sizeof(Id) + sizeof(float));
  const std::uint64_t available = caller.budget->available();
  const std::uint64_t least = result_bytes + costs.fixed_bytes + 64 * per_query;
  if (least > available) refuse_limit(search_name, caller.budget->limit(), caller.budget->used() + least);
  const std::size_t tile = static_cast<std::size_t>(
      std::min<std::uint64_t>(max_queries, (available - result_bytes - costs.fixed_bytes) / per_query));

  const Reservation reservation(*caller.budget, result_bytes);
  Neighbors result{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  ProgressMeter progress(caller.options.progress, caller.clock, "search", queries.rows());
  // The context is copied only if there is progress to suppress: searches for one query are short.
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
                            .rerank = vectors,
                            .ids = result.ids.view().slice(first, count),
                            .distances = result.distances.view().slice(first, count)});
    progress.add(count);
  }
  progress.finish();
  return result;
}

}  // namespace nearwise
