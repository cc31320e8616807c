#include "ivf/list_search.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/filter.h"
#include "core/progress.h"
#include "ivf/filter/denied_entries.h"
#include "ivf/filter/ivf_filter.h"
#include "ops/exact_knn.h"
#include "ops/filter/filtered_search.h"
#include "ops/knn_plan.h"

namespace nearwise::ivf {
namespace {

// Queries searched at a time: enough to share the scan of a list, few enough for regular progress reports.
constexpr std::size_t max_queries = 16384;
// A limit must allow for as many at a time.
constexpr std::uint64_t least_queries = 64;

RerankVectors vectors_of(const IvfInternals::State& state, const IvfSearchOptions& options) {
  if (options.rerank.rows() != 0) return {.rows = options.rerank};
  return options.codes_only ? RerankVectors() : state.rerank_vectors();
}

ListSearchCosts costs_of(Stream& stream, const Ivf& index, const IvfInternals::State& state,
                         ElementType query_type, std::size_t candidates, std::size_t probes) {
  const ListCodec codec = state.view();
  return dispatch(&Ops::list_search_costs, "list_search_costs", stream,
                  ListSearchShape{.dim = codec.dim,
                                  .metric = state.metric,
                                  .query_type = query_type,
                                  .row_type = codec.type,
                                  .candidates = candidates,
                                  .probes = probes,
                                  .lists = index.lists(),
                                  .rows = index.size(),
                                  .codebooks = codec.encoding == ListEncoding::lsq ? codec.parts() : 0});
}

// That a search caches if a larger limit leaves room for them: they count on the index's budget.
std::uint64_t norms_bytes(const Context& context, const IvfInternals::State& state) {
  if (!state.norms || state.budget != context.state().budget) return 0;
  return CachedNorms::bytes(state.rows.rows(), state.rows.lists());
}

// Neighbours to search for so that k are left without `near` excluded ones among them. The last of them are
// found less often than the average, hence an eighth more; rounded up, so that queries are searched together.
std::size_t reach_of(std::size_t k, std::size_t near) {
  if (4 * near <= k) return k;
  const std::size_t more = divide_up(9 * near, std::size_t{8});
  return k + round_up(more, std::max<std::size_t>(1, std::bit_floor(more) / 4));
}

// Of those, by the inverse of reach_of().
std::size_t excluded_within(std::size_t k, std::size_t reach) { return (reach - k) / 9 * 8; }

}  // namespace

ListSearch::ListSearch(const Context& context, const Ivf& index, const RowsView& queries, std::size_t k,
                       const IvfSearchOptions& options)
    : context_(context),
      index_(index),
      state_(IvfInternals::state_of(index)),
      queries_(queries),
      k_(k),
      vectors_(vectors_of(state_, options)),
      candidates_(options.candidates),
      has_given_probes_(options.probes || options.scanned),
      denied_(FilterInternals::denied(options.filter)) {
  caches_norms_ =
      state_.norms && context.state().place.kind == DeviceKind::cpu && state_.norms->reserve(index.size());
}

std::uint64_t least_search_bytes(const Context& context, const Ivf& index, const SearchShape& shape) {
  const IvfInternals::State& state = IvfInternals::state_of(index);
  constexpr std::uint64_t entry_bytes = sizeof(Id) + sizeof(float);
  const auto stream = open_stream(context);
  const ListSearchCosts costs =
      costs_of(*stream, index, state, shape.query_type, shape.candidates, shape.probes);
  const RowsView queries(nullptr, shape.query_type, std::min<std::size_t>(shape.queries, least_queries),
                         index.dim(), index.dim() * element_size(shape.query_type));
  // The lists nearest to a tile of queries are found before they are scanned.
  const std::uint64_t tile =
      std::max(costs.fixed_bytes + least_queries * (costs.bytes_per_query + shape.probes * entry_bytes),
               least_knn_bytes(context, queries, state.centroids, shape.probes, state.metric));
  return shape.queries * shape.k * entry_bytes + tile + norms_bytes(context, state);
}

std::span<const std::atomic<const float*>> ListSearch::norms_of(std::span<const Id> lists) const {
  if (!caches_norms_) return {};
  const Context::State& caller = context_.state();
  const ListCodec codec = state_.view();
  state_.norms->make(*caller.threads, *caller.budget,
                     {codec, *state_.tables, state_.metric, state_.centre, state_.rows.views()}, lists);
  return state_.norms->pointers();
}

std::size_t ListSearch::candidates(const Pass& pass) const {
  if (!vectors_.any()) return pass.k;
  // Where the results are searched for together with those that are dropped, there are more of them.
  const std::size_t dropped = pass.denied.any() ? excluded_within(k_, pass.reach) : 0;
  const std::size_t wanted =
      candidates_ ? *candidates_ + (pass.k - k_) : state_.candidates_for(pass.reach) - dropped;
  // There are no more candidates than vectors.
  return std::min(std::max(pass.k, wanted), std::max<std::size_t>(index_.size(), 1));
}

void ListSearch::use_resident_lists() {
  if (context_.state().place.kind != DeviceKind::cpu && !vectors_.by_id())
    resident_ = state_.resident.on(context_, state_.resident_source());
}

Neighbors ListSearch::run(const ProbeCount& probes, const Probe& probe) const {
  const Context::State& caller = context_.state();
  ProgressMeter progress(caller.options.progress, caller.clock, "search", queries_.rows());
  Pass pass = {
      .queries = queries_, .k = k_, .reach = k_, .denied = denied_, .resident = resident_ != nullptr};
  if (!denied_.any()) {
    Neighbors found = search(pass, probes, probe, progress, nullptr);
    progress.finish();
    return found;
  }
  const auto stream = open_stream(context_);
  if (!costs_of(*stream, index_, state_, queries_.type(), k_, probes(k_)).denies_ids) {
    pass.k += denied_.longest();
    pass.reach = pass.k;
    pass.denied = {};
    const Neighbors found = search(pass, probes, probe, progress, nullptr);
    progress.finish();
    return drop_denied(found, k_, denied_, state_.metric);
  }
  std::vector<FarQuery> far;
  const bool adapts = !has_given_probes_ || (vectors_.any() && !candidates_);
  Neighbors found = search(pass, probes, probe, progress, adapts ? &far : nullptr);
  std::ranges::sort(far);
  for (auto first = far.begin(); first != far.end();) {
    const auto end = std::ranges::find_if(first, far.end(),
                                          [&](const FarQuery& query) { return query.reach != first->reach; });
    search_far({first, end}, probes, probe, progress, found);
    first = end;
  }
  progress.finish();
  return found;
}

void ListSearch::search_far(std::span<const FarQuery> some, const ProbeCount& probes, const Probe& probe,
                            ProgressMeter& progress, Neighbors& result) const {
  MemoryBudget& budget = *context_.state().budget;
  const std::size_t row_bytes = queries_.dim() * element_size(queries_.type());
  Buffer<std::byte> rows(budget, some.size() * row_bytes);
  Buffer<std::size_t> offsets(budget, some.size() + 1);
  std::size_t ids_count = 0;
  for (const FarQuery& far : some) ids_count += denied_.of(far.query).size();
  Buffer<Id> ids(budget, ids_count);
  offsets[0] = 0;
  for (std::size_t i = 0; i < some.size(); ++i) {
    const std::span<const Id> own = denied_.of(some[i].query);
    std::memcpy(rows.data() + i * row_bytes, queries_.row(some[i].query), row_bytes);
    std::ranges::copy(own, ids.data() + offsets[i]);
    offsets[i + 1] = offsets[i] + own.size();
  }
  DeniedIds denied = denied_;
  denied.offsets = offsets.span();
  denied.ids = ids.span();
  const Pass pass = {.queries = {rows.data(), queries_.type(), some.size(), queries_.dim(), row_bytes},
                     .k = k_,
                     .reach = some.front().reach,
                     .denied = denied};
  const Neighbors found = search(pass, probes, probe, progress, nullptr);
  for (std::size_t i = 0; i < some.size(); ++i) {
    std::ranges::copy(found.ids.row(i), result.ids.row(some[i].query).begin());
    std::ranges::copy(found.distances.row(i), result.distances.row(some[i].query).begin());
  }
}

std::vector<std::uint32_t> ListSearch::search_resident(const Context& quiet, Stream& stream,
                                                       const RowsView& queries, const Sizes& sizes,
                                                       MatrixView<Id> ids,
                                                       MatrixView<float> distances) const {
  const bool by_vectors = vectors_.any();
  const bool on_host = by_vectors && !resident_->has_vectors();
  const std::size_t found = on_host ? sizes.candidates : ids.cols();
  MemoryBudget& budget = *context_.state().budget;
  Buffer<Id> candidates(budget, on_host ? queries.rows() * found : 0);
  Buffer<float> keys(budget, candidates.size());
  const std::vector<std::uint32_t> left =
      dispatch(&Ops::search_prepared_lists, "search_prepared_lists", stream,
               PreparedListSearchArgs{
                   .lists = *resident_,
                   .queries = queries,
                   .probes = sizes.probes,
                   .k = found,
                   .candidates = sizes.candidates,
                   .rerank = by_vectors && !on_host,
                   .ids = on_host ? MatrixView<Id>(candidates.data(), queries.rows(), found) : ids,
                   .distances = on_host ? MatrixView<float>(keys.data(), queries.rows(), found) : distances});
  if (!on_host) return left;
  for (const std::uint32_t query : left) std::fill_n(candidates.data() + query * found, found, no_id);
  const Neighbors best = rerank_entries(
      quiet, state_, queries, MatrixView<const Id>(candidates.data(), queries.rows(), found), ids.cols());
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    std::ranges::copy(best.ids.row(query), ids.row(query).begin());
    std::ranges::copy(best.distances.row(query), distances.row(query).begin());
  }
  return left;
}

void ListSearch::search_left(std::span<const std::uint32_t> left, std::size_t first_query,
                             std::size_t tile_queries, const Pass& pass, const ProbeCount& probes,
                             const Probe& probe, ProgressMeter& progress, Neighbors& result) const {
  const std::size_t row_bytes = queries_.dim() * element_size(queries_.type());
  const bool all = left.size() == tile_queries;
  Buffer<std::byte> rows(*context_.state().budget, all ? 0 : left.size() * row_bytes);
  for (std::size_t i = 0; i < left.size() && !all; ++i)
    std::memcpy(rows.data() + i * row_bytes, pass.queries.row(first_query + left[i]), row_bytes);
  const RowsView some(rows.data(), queries_.type(), left.size(), queries_.dim(), row_bytes);
  const Pass on_host = {.queries = all ? pass.queries.slice(first_query, tile_queries) : some,
                        .k = pass.k,
                        .reach = pass.reach};
  const Neighbors found = search(on_host, probes, probe, progress, nullptr);
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::ranges::copy(found.ids.row(i), result.ids.row(first_query + left[i]).begin());
    std::ranges::copy(found.distances.row(i), result.distances.row(first_query + left[i]).begin());
  }
}

Neighbors ListSearch::search(const Pass& pass, const ProbeCount& probe_count, const Probe& probe,
                             ProgressMeter& progress, std::vector<FarQuery>* far) const {
  const Context::State& caller = context_.state();
  const auto stream = open_stream(context_);
  const ListCodec codec = state_.view();
  const std::size_t candidates = this->candidates(pass);
  const std::size_t probes = probe_count(pass.reach);
  const ListSearchCosts costs = costs_of(*stream, index_, state_, queries_.type(), candidates, probes);
  const std::uint64_t result_bytes =
      checked_multiply(checked_multiply(pass.queries.rows(), pass.k, "Ivf.search: queries * k"),
                       sizeof(Id) + sizeof(float), search_name);
  // Includes the result of the search for centroids.
  const std::uint64_t per_query = costs.bytes_per_query + probes * (sizeof(Id) + sizeof(float)) +
                                  DeniedNumbers::bytes_per_query(pass.denied);
  const std::uint64_t available = caller.budget->available();
  // Those that a device leaves to the host are searched for with what is left of its memory.
  const std::uint64_t least =
      result_bytes + costs.fixed_bytes +
      (pass.reach == k_ && pass.resident == (resident_ != nullptr) ? least_queries : 1) * per_query;
  if (least > available)
    refuse_limit(search_name, caller.budget->limit(),
                 caller.budget->used() + least + (caches_norms_ ? 0 : norms_bytes(context_, state_)));
  const std::size_t tile = static_cast<std::size_t>(
      std::min<std::uint64_t>(max_queries, (available - result_bytes - costs.fixed_bytes) / per_query));

  const Reservation reservation(*caller.budget, result_bytes);
  Neighbors result{Matrix<Id>(pass.queries.rows(), pass.k), Matrix<float>(pass.queries.rows(), pass.k)};
  // The context is copied only if there is progress to suppress: searches for one query are short.
  const Context quiet = caller.options.progress ? context_.without_progress() : context_;
  for (std::size_t first = 0; first < pass.queries.rows(); first += tile) {
    const std::size_t count = std::min(tile, pass.queries.rows() - first);
    const RowsView part = pass.queries.slice(first, count);
    if (pass.resident && !pass.denied.any()) {
      const std::vector<std::uint32_t> left =
          search_resident(quiet, *stream, part, {probes, candidates}, result.ids.view().slice(first, count),
                          result.distances.view().slice(first, count));
      progress.add(count - left.size());
      if (!left.empty()) search_left(left, first, count, pass, probe_count, probe, progress, result);
      continue;
    }
    Tile scanned = probe(quiet, part, pass.reach);
    const DeniedNumbers denied(context_, state_, scanned, pass.denied.from_query(first, count));
    std::size_t searched = count;
    for (std::size_t query = 0; far != nullptr && query < count; ++query) {
      const std::size_t reach = reach_of(k_, denied.near(query));
      if (reach == k_) continue;
      far->push_back({reach, first + query});
      std::ranges::fill(scanned.probes.row(query), no_id);
      --searched;
    }
    if (searched == 0) continue;
    dispatch(&Ops::list_search, "list_search", *stream,
             ListSearchArgs{.queries = part,
                            .probes = {scanned.probes.data(), scanned.probes.rows() * scanned.probes.cols()},
                            .lists = scanned.lists,
                            .codec = codec,
                            .metric = state_.metric,
                            .centre = state_.centre,
                            .norms = scanned.norms,
                            .k = pass.k,
                            .candidates = candidates,
                            .rerank = vectors_,
                            .denied = denied.view(),
                            .ids = result.ids.view().slice(first, count),
                            .distances = result.distances.view().slice(first, count)});
    progress.add(searched);
  }
  return result;
}

}  // namespace nearwise::ivf
