// Searches of inverted files: exact search for the nearest centroids, then a scan of their lists.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/filter.h"
#include "core/float_environment.h"
#include "ivf/filter/ivf_filter.h"
#include "ivf/ivf_state.h"
#include "ivf/list_search.h"
#include "nearwise/exact.h"
#include "ops/check_rows.h"
#include "ops/exact_knn.h"
#include "ops/filter/filtered_search.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace {

using ivf::search_name;

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
  check_filter(search_name, options.filter, queries.rows());
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

// Of the rows to re-rank by that are compared with the lists.
constexpr std::size_t most_sample_rows = 64;

// Of a search that re-ranks by rows of the caller, which are checked first.
std::uint64_t reranking_bytes(const Context& context, const Ivf& index, const IvfInternals::State& state,
                              const RowsView& queries, std::size_t k, const IvfSearchOptions& options) {
  const RowsView& rows = options.rerank;
  const RowsView sample(nullptr, rows.type(), std::min(most_sample_rows, index.size()), rows.dim(),
                        rows.stride_bytes());
  const std::size_t candidates = options.candidates.value_or(state.candidates_for(k));
  const ivf::SearchShape shape = {.query_type = queries.type(),
                                  .queries = queries.rows(),
                                  .k = k,
                                  .candidates = std::min(std::max(k, candidates), index.size()),
                                  .probes = options.probes.value_or(state.probes_for(k))};
  return std::max(least_knn_bytes(context, sample, state.centroids, 1, state.metric),
                  ivf::least_search_bytes(context, index, shape));
}

// Refuses rows that are not those of the index: most of a sample must belong to the lists that they are in.
// Rows may be rounded, so that a few may not.
void check_rerank_rows(const Context& context, const Ivf& index, const IvfInternals::State& state,
                       const RowsView& rows) {
  if (index.size() == 0 || state.checked_rows.exchange(rows.data()) == rows.data()) return;
  const std::size_t count = std::min(most_sample_rows, index.size());
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
  const index::IndexLock::Reading reading(state.lock, &context.state().cancel);
  check_search(context, *this, queries, k, options);
  const DefaultFloatEnvironment environment;
  const Context::State& caller = context.state();
  caller.cancel.check();
  if (options.rerank.rows() != 0 && options.rerank.place().kind == DeviceKind::cpu) {
    const bool has_limit = caller.budget->limit() != 0;
    if (has_limit && size() != 0 && queries.rows() != 0 && options.filter.is_trivial())
      check_memory(search_name, context, reranking_bytes(context, *this, state, queries, k, options));
    check_rerank_rows(context, *this, state, options.rerank);
  }
  // Ids that single queries must not return are left out by the scan.
  if (FilterInternals::is_shared(options.filter) ||
      FilterInternals::per_query(options.filter) == FilterInternals::PerQuery::allow)
    return ivf::search_filtered(context, *this, queries, k, options);
  return ivf::search_nearest_lists(context, *this, queries, k, options);
}

Neighbors ivf::search_nearest_lists(const Context& context, const Ivf& index, const RowsView& queries,
                                    std::size_t k, const IvfSearchOptions& options) {
  const IvfInternals::State& state = IvfInternals::state_of(index);
  const auto probes = [&](std::size_t reach) { return options.probes.value_or(state.probes_for(reach)); };
  ListSearch search(context, index, queries, k, options);
  search.use_resident_lists();
  return search.run(probes, [&](const Context& quiet, const RowsView& part, std::size_t reach) {
    Neighbors nearest = knn(quiet, part, state.centroids, probes(reach), {.metric = state.metric});
    const std::span<const Id> probed(nearest.ids.data(), part.rows() * nearest.ids.cols());
    const auto norms = search.norms_of(probed);
    return ListSearch::Tile{.probes = std::move(nearest.ids), .lists = state.rows.views(), .norms = norms};
  });
}

}  // namespace nearwise
