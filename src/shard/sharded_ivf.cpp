// Inverted files over several devices: parts find candidates, which are merged and then re-ranked once.
#include <algorithm>

#include "backend/context_state.h"
#include "core/checked.h"
#include "nearwise/sharded.h"
#include "ops/merge_neighbors.h"
#include "ops/rerank.h"
#include "shard/prepare.h"

namespace nearwise {
namespace shard {

void check_quantizers(const Indexes& indexes) {
  for (const Ivf* const each : indexes)
    require(each->has_quantizers_of(*indexes.front()),
            "Ivf: indexes with the same quantizers expected (made by one training), given others");
}

Neighbors search_list_parts(const Context& context, const Members& parts, const Indexes& indexes,
                            RowsView queries, std::size_t k, const IvfSearchOptions& options,
                            const ListSearch& search) {
  constexpr const char* operation = "search";
  const bool reranks = options.rows.rows() != 0;
  // What one part finds wrong with the arguments is wrong for all; ids are a matter of each.
  const Ivf& one = *indexes.front();
  static_cast<void>(one.search(context.without_progress(), queries.slice(0, 0), k, options));
  for (const Ivf* const each : indexes)
    require(!reranks || static_cast<std::uint64_t>(each->next_id()) <= options.rows.rows(),
            "search: `rows` must hold a row for every id, given {} rows for ids to {}", options.rows.rows(),
            each->next_id() - 1);
  // No list of candidates is longer than what there is.
  const std::size_t wanted = options.candidates != 0 ? options.candidates : one.candidates(k);
  const std::size_t candidates = reranks ? std::max(k, std::min(wanted, rows_of(parts))) : k;
  const IvfSearchOptions of_parts = {.probes = options.probes != 0 ? options.probes : one.probes()};

  const std::uint64_t entries =
      checked_multiply(checked_multiply(queries.rows(), candidates, "search: queries * candidates"),
                       parts.size() + 2, operation);
  const Reservation reservation(
      *context.state().budget,
      checked_multiply(entries, std::uint64_t{sizeof(Id) + sizeof(float)}, operation));
  std::vector<Neighbors> answers(parts.size());
  Work work = {.operation = operation, .units = {}, .run = [&](std::size_t part, const Context& own) {
                 answers[part] = search(part, own, queries, candidates, of_parts);
               }};
  for (const Member& part : parts) work.units.push_back(std::max<std::size_t>(1, part.size));
  run_at_once(context, parts, work);

  std::vector<NeighborsView> views;
  for (const Neighbors& answer : answers) views.push_back({answer.ids.view(), answer.distances.view()});
  Neighbors joined{Matrix<Id>(queries.rows(), candidates), Matrix<float>(queries.rows(), candidates)};
  merge_neighbors(*context.state().threads, one.metric(), views, joined.ids.view(), joined.distances.view());
  if (!reranks) return joined;
  Neighbors found{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  rerank(context, queries, options.rows, one.metric(), joined.ids.view(), found);
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
