// Inverted files over several devices: parts find candidates, which are merged and re-ranked together.
#include <algorithm>

#include "backend/context_state.h"
#include "nearwise/sharded.h"
#include "ops/filter/filtered_search.h"
#include "ops/merge_neighbors.h"
#include "ops/rerank.h"
#include "shard/merge_parts.h"
#include "shard/prepare.h"

namespace nearwise {
namespace shard {
namespace {

// Every part plans and re-ranks by itself: the lists near a query are in few parts, so each scans as many
// allowed vectors as the whole index would.
Neighbors search_filtered_parts(const Context& context, const Members& parts, const RowsView& queries,
                                std::size_t k, const IvfSearchOptions& options,
                                const Search<IvfSearchOptions>& search) {
  IvfSearchOptions of_parts = options;
  of_parts.scanned = parts.front().ivf->scanned(k, options, rows_of(parts));
  return merge_parts("Ivf.search", context, parts, queries, k, of_parts, search);
}

}  // namespace

Neighbors search_parts(const Context& context, const Members& parts, RowsView queries, std::size_t k,
                       const IvfSearchOptions& options, const Search<IvfSearchOptions>& search) {
  constexpr const char* operation = "Ivf.search";
  const bool has_rows = options.rerank.rows() != 0;
  const bool reranks = has_rows || (!options.codes_only && parts.front().ivf->vector_bytes() != 0);
  // Wrong arguments are wrong for all parts alike; only ids differ.
  const Ivf& one = *parts.front().ivf;
  check_filter(operation, options.filter, queries.rows());
  IvfSearchOptions without_queries = options;
  if (options.filter.queries()) without_queries.filter = options.filter.from_query(0, 0);
  static_cast<void>(one.search(context.without_progress(), queries.slice(0, 0), k, without_queries));
  if (!options.filter.is_trivial()) return search_filtered_parts(context, parts, queries, k, options, search);
  for (const Member& part : parts)
    require(!has_rows || static_cast<std::uint64_t>(part.ivf->next_id()) <= options.rerank.rows(),
            "{}: `rerank` must have a row for every id, got {} rows for ids up to {}", operation,
            options.rerank.rows(), part.ivf->next_id() - 1);
  // There are no more candidates than vectors.
  const std::size_t wanted = options.candidates.value_or(one.candidates(k));
  const std::size_t candidates = reranks ? std::max(k, std::min(wanted, rows_of(parts))) : k;
  const IvfSearchOptions of_parts = {.probes = options.probes.value_or(one.probes(k)), .codes_only = true};

  Neighbors joined = merge_parts(operation, context, parts, queries, candidates, of_parts, search);
  if (!reranks) return joined;
  const Reservation reservation(*context.state().budget,
                                queries.rows() * candidates * (sizeof(Id) + sizeof(float)));
  Neighbors found{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  if (has_rows) {
    rerank(context, queries, options.rerank, one.metric(), joined.ids.view(), found);
    return found;
  }
  // Each part re-ranks the candidates that it holds.
  std::vector<Neighbors> reranked;
  std::vector<NeighborsView> views;
  for (const Member& part : parts)
    reranked.push_back(part.ivf->rerank(context.without_progress(), queries, joined.ids.view(), k));
  for (const Neighbors& answer : reranked) views.push_back({answer.ids.view(), answer.distances.view()});
  merge_neighbors(*context.state().threads, one.metric(), views, found.ids.view(), found.distances.view());
  return found;
}

}  // namespace shard

namespace {

std::vector<Placed<Ivf>> prepare_at_once(std::span<const Context> contexts, const Ivf& index,
                                         const std::function<shard::Rows(std::size_t)>& rows_of) {
  return shard::prepare_at_once<Ivf>("Ivf", contexts, index.metric(), rows_of,
                                     [&](const Context& context, const shard::Rows& rows) {
                                       return index.part(context, rows.first, rows.count);
                                     });
}

}  // namespace

Sharded<Ivf> shard_ivf(std::span<const Context> contexts, const Ivf& index) {
  return Sharded<Ivf>(prepare_at_once(
      contexts, index, [&](std::size_t i) { return shard::part_of(index.size(), i, contexts.size()); }));
}

Replicated<Ivf> replicate_ivf(std::span<const Context> contexts, const Ivf& index) {
  return Replicated<Ivf>(prepare_at_once(contexts, index, [&](std::size_t) {
    return shard::Rows{0, index.size()};
  }));
}

Sharded<Replicated<Ivf>> shard_and_replicate_ivf(std::span<const Context> contexts, std::size_t shards,
                                                 const Ivf& index) {
  return shard::prepare_nested<Ivf>("Ivf", contexts, shards, index.size(), [&](const auto& rows_of) {
    return prepare_at_once(contexts, index, rows_of);
  });
}

}  // namespace nearwise
