#include "index/list_search.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/filter.h"
#include "core/progress.h"
#include "index/filter/denied_entries.h"
#include "ops/filter/filtered_search.h"
#include "ops/knn_plan.h"

namespace nearwise::index {
namespace {

// Queries searched at a time: enough to share the scan of a list, few enough for regular progress reports.
constexpr std::size_t max_queries = 16384;

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

}  // namespace

ListSearch::ListSearch(const Context& context, const Ivf& index, const RowsView& queries, std::size_t k,
                       const IvfSearchOptions& options)
    : context_(context),
      index_(index),
      state_(IvfInternals::state_of(index)),
      queries_(queries),
      k_(k),
      vectors_(vectors_of(state_, options)),
      candidates_(vectors_.any() ? std::max(k, options.candidates.value_or(state_.candidates_for(k))) : k),
      denied_(FilterInternals::denied(options.filter)) {
  caches_norms_ =
      state_.norms && context.state().place.kind == DeviceKind::cpu && state_.norms->reserve(index.size());
}

std::span<const std::atomic<const float*>> ListSearch::norms_of(std::span<const Id> lists) const {
  if (!caches_norms_) return {};
  const Context::State& caller = context_.state();
  const ListCodec codec = state_.view();
  state_.norms->make(*caller.threads, *caller.budget,
                     {codec, *state_.tables, state_.metric, state_.centre, state_.rows.views()}, lists);
  return state_.norms->pointers();
}

Neighbors ListSearch::run(std::size_t probes, const Probe& probe) const {
  const auto stream = open_stream(context_);
  if (!denied_.any() || costs_of(*stream, index_, state_, queries_.type(), k_, probes).denies_ids)
    return search(k_, candidates_, probes, probe, denied_);
  const std::size_t more = denied_.longest();
  return drop_denied(search(k_ + more, candidates_ + more, probes, probe, {}), k_, denied_, state_.metric);
}

Neighbors ListSearch::search(std::size_t k, std::size_t wanted_candidates, std::size_t probes,
                             const Probe& probe, const DeniedIds& denied) const {
  const Context::State& caller = context_.state();
  const auto stream = open_stream(context_);
  const ListCodec codec = state_.view();
  // There are no more candidates than vectors.
  const std::size_t candidates = std::min(wanted_candidates, std::max<std::size_t>(index_.size(), 1));
  const ListSearchCosts costs = costs_of(*stream, index_, state_, queries_.type(), candidates, probes);
  const std::uint64_t result_bytes =
      checked_multiply(checked_multiply(queries_.rows(), k, "Ivf.search: queries * k"),
                       sizeof(Id) + sizeof(float), search_name);
  // Includes the result of the search for centroids.
  const std::uint64_t per_query =
      costs.bytes_per_query + probes * (sizeof(Id) + sizeof(float)) + DeniedNumbers::bytes_per_query(denied);
  const std::uint64_t available = caller.budget->available();
  const std::uint64_t least = result_bytes + costs.fixed_bytes + 64 * per_query;
  if (least > available) refuse_limit(search_name, caller.budget->limit(), caller.budget->used() + least);
  const std::size_t tile = static_cast<std::size_t>(
      std::min<std::uint64_t>(max_queries, (available - result_bytes - costs.fixed_bytes) / per_query));

  const Reservation reservation(*caller.budget, result_bytes);
  Neighbors result{Matrix<Id>(queries_.rows(), k), Matrix<float>(queries_.rows(), k)};
  ProgressMeter progress(caller.options.progress, caller.clock, "search", queries_.rows());
  // The context is copied only if there is progress to suppress: searches for one query are short.
  const Context quiet = caller.options.progress ? context_.without_progress() : context_;
  for (std::size_t first = 0; first < queries_.rows(); first += tile) {
    const std::size_t count = std::min(tile, queries_.rows() - first);
    const RowsView part = queries_.slice(first, count);
    const Tile scanned = probe(quiet, part, first);
    const DeniedNumbers denied_entries(context_, state_, scanned, denied.from_query(first, count));
    dispatch(&Ops::list_search, "list_search", *stream,
             ListSearchArgs{.queries = part,
                            .probes = {scanned.probes.data(), scanned.probes.rows() * scanned.probes.cols()},
                            .lists = scanned.lists,
                            .codec = codec,
                            .metric = state_.metric,
                            .centre = state_.centre,
                            .norms = scanned.norms,
                            .k = k,
                            .candidates = candidates,
                            .rerank = vectors_,
                            .denied = denied_entries.view(),
                            .ids = result.ids.view().slice(first, count),
                            .distances = result.distances.view().slice(first, count)});
    progress.add(count);
  }
  progress.finish();
  return result;
}

}  // namespace nearwise::index
