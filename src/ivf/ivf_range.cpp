// Range search in inverted files: exact within the probed lists.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/filter.h"
#include "core/float_environment.h"
#include "core/lost_pages.h"
#include "ivf/entry_vectors.h"
#include "ivf/filter/allowed_entries.h"
#include "ops/check_rows.h"
#include "ops/filter/filtered_search.h"
#include "ops/gather_rows.h"
#include "ops/range_search.h"

namespace nearwise {
namespace {

constexpr const char* range_name = "Ivf.range_search";

// The entries of a list that a search compares, as rows: its vectors, or else the decoded codes.
class ListRows {
 public:
  ListRows(const Context& context, const IvfInternals::State& state, const ivf::EntryVectors& vectors,
           std::size_t list, const ivf::AllowedEntries* allowed) {
    const ListView& view = state.rows.view(list);
    const ListCodec codec = state.view();
    const std::size_t count = allowed == nullptr ? view.rows : allowed->count(list);
    const ElementType type = vectors.any() ? vectors.type() : codec.type;
    const std::size_t bytes = codec.dim * element_size(type);
    rows_ = Buffer<std::byte>(*context.state().budget, count * bytes);
    ids_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t row = allowed == nullptr ? i : allowed->rows(list)[i];
      ids_[i] = view.ids[row];
      if (vectors.any())
        vectors.copy(view, row, rows_.data() + i * bytes);
      else
        decode_rows(codec, view, list, row, 1, rows_.data() + i * bytes);
    }
    view_ = {rows_.data(), type, count, codec.dim, bytes};
  }

  const RowsView& view() const { return view_; }
  Id id(std::size_t row) const { return ids_[row]; }

 private:
  Buffer<std::byte> rows_;
  std::vector<Id> ids_;
  RowsView view_;
};

}  // namespace

RangeNeighbors Ivf::range_search(const Context& context, RowsView queries, float radius,
                                 const IvfRangeOptions& options) const {
  const State& state = *state_;
  require(!std::isnan(radius), "{}: the radius must be a number, got NaN", range_name);
  check_rows(range_name, context, queries, centroids(), {"queries", "index"});
  require(queries.place().kind == DeviceKind::cpu, "{}: queries must be on the host, got queries on {}",
          range_name, name(queries.place()));
  const index::IndexLock::Reading reading(state.lock, &context.state().cancel);
  const std::size_t probes = options.probes.value_or(state.probes);
  require(probes >= 1 && probes <= lists(), "{}: probes must be 1 to {}, got {}", range_name, lists(),
          probes);
  check_filter(range_name, options.filter, queries.rows());
  const DefaultFloatEnvironment environment;
  const LostPagesScope lost_pages;
  const Context quiet = context.without_progress();
  const bool is_shared = FilterInternals::is_shared(options.filter);
  const auto allowed = is_shared ? ivf::AllowedEntries::of(quiet, state, options.filter) : nullptr;
  const Neighbors nearest =
      knn(quiet, queries, state.centroids, probes,
          {.metric = state.metric, .filter = allowed ? allowed->list_filter() : Filter()});

  std::vector<std::vector<std::uint32_t>> queries_of(lists());
  for (std::size_t query = 0; query < queries.rows(); ++query)
    for (const Id list : nearest.ids.row(query))
      if (list != no_id)
        queries_of[static_cast<std::size_t>(list)].push_back(static_cast<std::uint32_t>(query));
  const ivf::EntryVectors vectors(state);
  std::vector<RangeRow> found(queries.rows());
  std::vector<Reservation> reservations;
  ProgressMeter progress(context.state().options.progress, context.state().clock, "range_search", lists());
  for (std::size_t list = 0; list < lists(); ++list) {
    context.state().cancel.check();
    progress.add(1);
    if (queries_of[list].empty() || state.rows.view(list).rows == 0) continue;
    const ListRows rows(quiet, state, vectors, list, allowed.get());
    if (rows.view().rows() == 0) continue;
    const GatheredRows some(quiet, queries, queries_of[list]);
    const RangeNeighbors answers =
        search_range_rows(quiet, some.view(), rows.view(), radius, state.metric, nullptr, {});
    reservations.emplace_back(*context.state().budget, 2 * answers.ids.size() * (sizeof(Id) + sizeof(float)));
    for (std::size_t i = 0; i < queries_of[list].size(); ++i) {
      const std::size_t query = queries_of[list][i];
      for (std::size_t entry = answers.offsets[i]; entry < answers.offsets[i + 1]; ++entry) {
        const Id id = rows.id(static_cast<std::size_t>(answers.ids[entry]));
        if (!options.filter.allows(id, query)) continue;
        found[query].ids.push_back(id);
        found[query].distances.push_back(answers.distances[entry]);
      }
    }
  }
  RangeNeighbors result;
  result.offsets.push_back(0);
  for (RangeRow& row : found) {
    sort_range_row(state.metric, row);
    result.ids.insert(result.ids.end(), row.ids.begin(), row.ids.end());
    result.distances.insert(result.distances.end(), row.distances.begin(), row.distances.end());
    result.offsets.push_back(result.ids.size());
  }
  progress.finish();
  return result;
}

}  // namespace nearwise
