// Searches of inverted files under a filter: by lists that hold allowed vectors, or exactly among all of
// these.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "core/checked.h"
#include "core/distance.h"
#include "core/filter.h"
#include "ivf/entry_vectors.h"
#include "ivf/filter/allowed_entries.h"
#include "ivf/filter/filter_plan.h"
#include "ivf/filter/ivf_filter.h"
#include "nearwise/exact.h"
#include "ops/filter/filtered_search.h"
#include "ops/merge_neighbors.h"

namespace nearwise::ivf {
namespace {

// Exact search copies at least this many vectors at a time.
constexpr std::size_t min_copied = 4096;
constexpr std::size_t max_candidates = std::size_t{1} << 22;  // ids of single queries, at a time
// Lists searched for beyond twice the average: regions differ in how many vectors are allowed.
constexpr std::size_t spare_probes = 8;

// Allowed entries of probed lists, copied together.
class CopiedLists {
 public:
  CopiedLists(const Context& context, const ListSearch& search, const AllowedEntries& entries)
      : context_(context),
        search_(search),
        entries_(entries),
        code_bytes_(search.state().rows.code_bytes()),
        views_(search.state().rows.lists()),
        norms_(search.state().rows.lists()) {}

  ListSearch::Tile tile(Matrix<Id> probes) {
    std::vector<Id> lists(probes.data(), probes.data() + probes.rows() * probes.cols());
    std::ranges::sort(lists);
    lists.erase(std::unique(lists.begin(), lists.end()), lists.end());
    std::erase(lists, no_id);
    copy(lists);
    ListSearch::Tile tile = {.probes = std::move(probes), .lists = views_};
    if (has_norms_) tile.norms = norms_;
    return tile;
  }

 private:
  // Copies the lists that are not there already.
  void copy(std::vector<Id>& lists) {
    const Context::State& caller = context_.state();
    const std::span<const ListView> all = search_.state().rows.views();
    const auto cached = search_.norms_of(lists);
    has_norms_ = !cached.empty();
    std::erase_if(lists, [&](Id list) { return views_[static_cast<std::size_t>(list)].rows != 0; });
    // Whole lists are scanned where they are.
    std::vector<std::size_t> firsts;
    std::size_t rows = 0;
    for (const Id number : lists) {
      const auto list = static_cast<std::size_t>(number);
      firsts.push_back(rows);
      if (entries_.count(list) != all[list].rows) rows += entries_.count(list);
    }
    codes_.emplace_back(*caller.budget, rows * code_bytes_);
    ids_.emplace_back(*caller.budget, rows);
    copied_norms_.emplace_back(*caller.budget, has_norms_ ? rows + lists.size() : 0);
    std::byte* const codes = codes_.back().data();
    Id* const ids = ids_.back().data();
    float* const norms = copied_norms_.back().data();
    caller.threads->for_each(lists.size(), [&](std::size_t i) {
      caller.cancel.check();
      const auto list = static_cast<std::size_t>(lists[i]);
      const ListView& from = all[list];
      const float* const own = has_norms_ ? cached[list].load(std::memory_order_acquire) : nullptr;
      if (entries_.count(list) == from.rows) {
        views_[list] = from;
        norms_[list] = own;
        return;
      }
      const std::span<const std::uint32_t> kept = entries_.rows(list);
      for (std::size_t entry = 0; entry < kept.size(); ++entry) {
        std::memcpy(codes + (firsts[i] + entry) * code_bytes_, from.codes + kept[entry] * code_bytes_,
                    code_bytes_);
        ids[firsts[i] + entry] = from.ids[kept[entry]];
      }
      views_[list] = {codes + firsts[i] * code_bytes_, ids + firsts[i], kept.size(), from.vectors,
                      kept.data()};
      if (own == nullptr) return;
      float* const out = norms + firsts[i] + i;  // each list is followed by its minimum
      for (std::size_t entry = 0; entry < kept.size(); ++entry) out[entry] = own[kept[entry]];
      out[kept.size()] = *std::min_element(out, out + kept.size());
      norms_[list] = out;
    });
  }

  const Context& context_;
  const ListSearch& search_;
  const AllowedEntries& entries_;
  const std::size_t code_bytes_;
  std::vector<ListView> views_;                   // [lists] empty: not copied
  std::vector<std::atomic<const float*>> norms_;  // [lists]
  bool has_norms_ = false;
  std::vector<Buffer<std::byte>> codes_;
  std::vector<Buffer<Id>> ids_;
  std::vector<Buffer<float>> copied_norms_;
};

// The nearest lists with allowed entries; `scanned` 0: exactly `probes` of them.
Matrix<Id> probes_of(const Context& context, const IvfInternals::State& state, const AllowedEntries& entries,
                     const RowsView& queries, std::size_t probes, std::size_t scanned) {
  while (true) {
    Neighbors nearest = knn(context, queries, state.centroids, probes,
                            {.metric = state.metric, .filter = entries.list_filter()});
    if (scanned == 0) return std::move(nearest.ids);
    std::size_t used = 1;
    bool is_enough = true;
    for (std::size_t query = 0; query < queries.rows(); ++query) {
      std::size_t rows = 0;
      std::size_t probe = 0;
      for (; probe < probes && rows < scanned; ++probe)
        rows += nearest.ids(query, probe) == no_id
                    ? 0
                    : entries.count(static_cast<std::size_t>(nearest.ids(query, probe)));
      is_enough = is_enough && (rows >= scanned || probes >= entries.lists());
      used = std::max(used, probe);
      for (; probe < probes; ++probe) nearest.ids(query, probe) = no_id;
    }
    if (is_enough) {
      Matrix<Id> kept(queries.rows(), used);
      for (std::size_t query = 0; query < queries.rows(); ++query)
        std::ranges::copy(nearest.ids.row(query).first(used), kept.row(query).begin());
      return kept;
    }
    probes = std::min(2 * probes, entries.lists());
  }
}

// The per-query lists of a filter, as rows of these entries.
Filter rows_of_ids(const Filter& filter, std::size_t queries,
                   std::span<const AllowedEntries::Entry> entries) {
  const DeniedIds denied = FilterInternals::denied(filter);
  if (!denied.any()) return {};
  std::vector<std::size_t> offsets = {0};
  std::vector<Id> rows;
  for (std::size_t query = 0; query < queries; ++query) {
    for (const Id id : denied.of(query)) {
      const auto entry = std::ranges::lower_bound(entries, id, {}, &AllowedEntries::Entry::id);
      if (entry != entries.end() && entry->id == id) rows.push_back(entry - entries.begin());
    }
    offsets.push_back(rows.size());
  }
  return Filter::deny_per_query(offsets, rows);
}

// Replaces numbers of entries by their ids.
void name_entries(Neighbors& found, std::span<const AllowedEntries::Entry> entries) {
  for (Id& id : std::span(found.ids.data(), found.ids.rows() * found.ids.cols()))
    if (id != no_id) id = entries[static_cast<std::size_t>(id)].id;
}

// Exact search among all allowed vectors.
Neighbors search_exactly(const Context& context, const IvfInternals::State& state,
                         const AllowedEntries& allowed, const RowsView& queries, std::size_t k,
                         const Filter& per_query) {
  const EntryVectors vectors(state);
  const std::span<const AllowedEntries::Entry> entries = allowed.by_id(state);
  MemoryBudget& budget = *context.state().budget;
  if (AllowedEntries::keeps_packed(context, entries.size() * vectors.bytes())) {
    const auto packed = allowed.packed(context.without_progress(), state);
    Neighbors found = packed->exact->search(
        context, queries, k,
        {.short_rows = ShortRows::pad, .filter = rows_of_ids(per_query, queries.rows(), entries)});
    name_entries(found, entries);
    return found;
  }
  const std::size_t part = budget.limit() == 0 ? entries.size()
                                               : static_cast<std::size_t>(std::clamp<std::uint64_t>(
                                                     budget.available() / 4 / vectors.bytes(),
                                                     std::min(entries.size(), min_copied), entries.size()));
  std::optional<Neighbors> best;
  for (std::size_t first = 0; first < entries.size(); first += part) {
    const std::span<const AllowedEntries::Entry> some =
        entries.subspan(first, std::min(part, entries.size() - first));
    const Buffer<std::byte> copies = copy_vectors(context, state, vectors, some);
    const RowsView rows(copies.data(), vectors.type(), some.size(), vectors.dim(), vectors.bytes());
    // The lists of single queries name ids, not copies.
    const Filter own = rows_of_ids(per_query, queries.rows(), some);
    Neighbors found =
        knn(context, queries, rows, k, {.metric = state.metric, .short_rows = ShortRows::pad, .filter = own});
    name_entries(found, some);
    if (best) {
      Neighbors both{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
      const NeighborsView parts[] = {{best->ids.view(), best->distances.view()},
                                     {found.ids.view(), found.distances.view()}};
      merge_neighbors(*context.state().threads, state.metric, parts, both.ids.view(), both.distances.view());
      best = std::move(both);
    } else {
      best = std::move(found);
    }
  }
  return std::move(*best);
}

// Every query has a list of its own: its vectors are compared one by one.
Neighbors search_query_lists(const Context& context, const IvfInternals::State& state,
                             const RowsView& queries, std::size_t k, const Filter& filter) {
  Neighbors result = padding(queries.rows(), k, state.metric);
  for (std::size_t first = 0; first < queries.rows();) {
    // As many queries as keep the matrix of candidates small.
    std::vector<std::vector<Id>> lists;
    std::size_t longest = 1;
    for (std::size_t query = first; query < queries.rows(); ++query) {
      std::vector<Id> ids = FilterInternals::allowed(filter, query);
      const std::size_t longer = std::max(longest, ids.size());
      if (!lists.empty() && longer * (lists.size() + 1) > max_candidates) break;
      longest = longer;
      lists.push_back(std::move(ids));
    }
    const Reservation reservation(*context.state().budget, lists.size() * longest * sizeof(Id));
    Matrix<Id> candidates(lists.size(), longest);
    std::fill_n(candidates.data(), lists.size() * longest, no_id);
    for (std::size_t i = 0; i < lists.size(); ++i) std::ranges::copy(lists[i], candidates.row(i).begin());
    const Neighbors found =
        rerank_entries(context, state, queries.slice(first, lists.size()), candidates.view(), k);
    std::copy_n(found.ids.data(), lists.size() * k, result.ids.data() + first * k);
    std::copy_n(found.distances.data(), lists.size() * k, result.distances.data() + first * k);
    first += lists.size();
  }
  return result;
}

// Whether the index's own vectors are compared.
bool compares_vectors(const IvfInternals::State& state, const IvfSearchOptions& options) {
  return EntryVectors(state).any() && !options.codes_only && options.rerank.rows() == 0;
}

// 0: none are re-ranked.
std::size_t candidates_of(const IvfInternals::State& state, std::size_t k, const IvfSearchOptions& options) {
  const bool reranks = options.rerank.rows() != 0 || (compares_vectors(state, options) && !state.is_flat());
  return reranks ? std::max(k, options.candidates.value_or(state.candidates_for(k))) : 0;
}

// Of each query. all_rows: of the index that this one is a part of.
std::size_t scanned_of(const IvfInternals::State& state, std::size_t k, const IvfSearchOptions& options,
                       std::size_t all_rows) {
  const std::size_t unfiltered = divide_up(state.probes_for(k) * all_rows, state.rows.lists());
  return options.scanned.value_or(std::max({unfiltered, candidates_of(state, k, options), k}));
}

IvfSearchPlan plan_of(const Ivf& index, const AllowedEntries& entries, std::size_t queries, std::size_t k,
                      const IvfSearchOptions& options) {
  const IvfInternals::State& state = IvfInternals::state_of(index);
  return plan_filtered({.queries = queries,
                        .allowed = entries.count(),
                        .lists = entries.lists(),
                        .scanned = scanned_of(state, k, options, state.rows.rows()),
                        .candidates = candidates_of(state, k, options),
                        .dim = index.dim(),
                        .vector_bytes = compares_vectors(state, options) ? EntryVectors(state).bytes() : 0,
                        .is_flat = state.is_flat(),
                        .has_fixed_probes = options.probes.has_value()});
}

}  // namespace

Neighbors search_filtered(const Context& context, const Ivf& index, const RowsView& queries, std::size_t k,
                          const IvfSearchOptions& options) {
  const IvfInternals::State& state = IvfInternals::state_of(index);
  if (FilterInternals::per_query(options.filter) == FilterInternals::PerQuery::allow)
    return search_query_lists(context, state, queries, k, options.filter);
  const auto entries = AllowedEntries::of(context, state, options.filter);
  if (entries->count() == 0) return padding(queries.rows(), k, state.metric);
  const IvfSearchPlan plan = plan_of(index, *entries, queries.rows(), k, options);
  if (plan.exact) return search_exactly(context, state, *entries, queries, k, options.filter);
  if (entries->count() == state.rows.rows() && !options.scanned)
    return search_nearest_lists(context, index, queries, k, options);

  const ListSearch search(context, index, queries, k, options);
  // Of results further away, in proportion.
  const auto farther = [&](std::size_t count, std::size_t reach) {
    return reach == k ? count : divide_up(count * state.probes_for(reach), state.probes_for(k));
  };
  const auto probes = [&](std::size_t reach) {
    return std::min(options.probes.value_or(farther(2 * plan.probes + spare_probes, reach)),
                    entries->lists());
  };
  // A query in a region with few allowed vectors probes more lists. Under a limit, memory for all is set
  // aside.
  const auto most = [&](std::size_t reach) {
    return options.probes || context.state().budget->limit() == 0 ? probes(reach) : entries->lists();
  };
  CopiedLists lists(context, search, *entries);
  return search.run(most, [&](const Context& quiet, const RowsView& part, std::size_t reach) {
    const std::size_t scanned = options.probes ? 0 : options.scanned.value_or(farther(plan.scanned, reach));
    return lists.tile(probes_of(quiet, state, *entries, part, probes(reach), scanned));
  });
}

}  // namespace nearwise::ivf

namespace nearwise {

std::size_t Ivf::scanned(std::size_t k, const IvfSearchOptions& options,
                         std::optional<std::size_t> all_rows) const {
  const index::IndexLock::Reading reading(state_->lock);
  return ivf::scanned_of(*state_, k, options, all_rows.value_or(state_->rows.rows()));
}

IvfSearchPlan Ivf::explain(const Context& context, std::size_t queries, std::size_t k,
                           const IvfSearchOptions& options) const {
  require(k >= 1, "Ivf.explain: k must be at least 1, got 0");
  const index::IndexLock::Reading reading(state_->lock, &context.state().cancel);
  const auto entries = options.filter.is_trivial()
                           ? std::make_shared<const ivf::AllowedEntries>(context, *state_, options.filter)
                           : ivf::AllowedEntries::of(context, *state_, options.filter);
  return ivf::plan_of(*this, *entries, queries, k, options);
}

}  // namespace nearwise
