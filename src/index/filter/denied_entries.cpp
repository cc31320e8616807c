#include "index/filter/denied_entries.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"

namespace nearwise::index {
namespace {

constexpr std::size_t task_queries = 64;

// Finds the number of the entry with an id, if a query may come across it. Not thread-safe.
class EntryFinder {
 public:
  // lookups: expected. The lists are those of the index, or copies of some of their entries.
  EntryFinder(const IvfInternals::State& state, const ListSearch::Tile& tile, std::size_t lookups)
      : state_(state),
        tile_(tile),
        numbers_(tile.lists.data() == state.rows.views().data() ? state.entry_numbers(lookups) : nullptr) {
    if (numbers_ != nullptr) return;
    static_cast<void>(state.ids());  // made here, not by every thread
    firsts_.assign(tile.lists.size() + 1, 0);
    for (std::size_t list = 0; list < tile.lists.size(); ++list)
      firsts_[list + 1] = firsts_[list] + tile.lists[list].rows;
  }

  std::optional<std::uint32_t> find(std::size_t query, Id id) const {
    if (numbers_ != nullptr) return numbers_->find(id);
    const std::optional<std::uint32_t> list = state_.ids().find(id);
    if (!list) return {};
    const std::span<const Id> probes = tile_.probes.row(query);
    if (std::ranges::find(probes, static_cast<Id>(*list)) == probes.end()) return {};
    const ListView& view = tile_.lists[*list];
    const Id* const entry = std::find(view.ids, view.ids + view.rows, id);
    if (entry == view.ids + view.rows) return {};
    return static_cast<std::uint32_t>(firsts_[*list] + static_cast<std::size_t>(entry - view.ids));
  }

 private:
  const IvfInternals::State& state_;
  const ListSearch::Tile& tile_;
  const IdTable* const numbers_;
  std::vector<std::size_t> firsts_;  // [lists + 1] number of the first entry; empty with `numbers_`
};

}  // namespace

DeniedNumbers::DeniedNumbers(const Context& context, const IvfInternals::State& state,
                             const ListSearch::Tile& tile, const DeniedIds& denied) {
  if (!denied.any()) return;
  const std::size_t queries = tile.probes.rows();
  MemoryBudget& budget = *context.state().budget;
  offsets_ = Buffer<std::size_t>(budget, queries + 1);
  counts_ = Buffer<std::uint32_t>(budget, queries);
  offsets_[0] = 0;
  std::size_t lookups = 0;
  for (std::size_t query = 0; query < queries; ++query) {
    lookups += denied.of(query).size();
    offsets_[query + 1] = offsets_[query] + DeniedEntries::slots_for(denied.of(query).size());
  }
  slots_ = Buffer<std::uint32_t>(budget, offsets_[queries]);
  bits_ = Buffer<std::uint64_t>(budget, offsets_[queries] * DeniedEntries::bits_per_slot / 64);
  stretches_ = Buffer<std::uint64_t>(budget, queries * DeniedEntries::stretch_words);
  const EntryFinder finder(state, tile, lookups);
  context.state().threads->for_each(divide_up(queries, task_queries), [&](std::size_t task) {
    context.state().cancel.check();
    const std::size_t first = task * task_queries;
    const std::size_t end = std::min(queries, first + task_queries);
    constexpr std::size_t slots_per_word = 64 / DeniedEntries::bits_per_slot;
    std::fill(slots_.data() + offsets_[first], slots_.data() + offsets_[end], DeniedEntries::empty);
    std::fill(bits_.data() + offsets_[first] / slots_per_word, bits_.data() + offsets_[end] / slots_per_word,
              0);
    std::fill(stretches_.data() + first * DeniedEntries::stretch_words,
              stretches_.data() + end * DeniedEntries::stretch_words, 0);
    std::fill(counts_.data() + first, counts_.data() + end, 0);
    for (std::size_t query = first; query < end; ++query)
      for (const Id id : denied.of(query))
        if (const auto number = finder.find(query, id)) insert(query, *number);
  });
}

void DeniedNumbers::insert(std::size_t query, std::uint32_t number) noexcept {
  const std::size_t mask = offsets_[query + 1] - offsets_[query] - 1;
  std::uint32_t* const table = slots_.data() + offsets_[query];
  const std::size_t hash = DeniedEntries::hash(number);
  std::size_t slot = hash & mask;
  while (table[slot] != DeniedEntries::empty) slot = (slot + 1) & mask;
  table[slot] = number;
  ++counts_[query];
  const auto set = [](std::uint64_t* words, std::size_t bit) {
    words[bit / 64] |= std::uint64_t{1} << (bit % 64);
  };
  constexpr std::size_t per_slot = DeniedEntries::bits_per_slot;
  set(bits_.data() + offsets_[query] * per_slot / 64, hash & (mask * per_slot + per_slot - 1));
  set(stretches_.data() + query * DeniedEntries::stretch_words,
      DeniedEntries::hash(number >> DeniedEntries::stretch_shift) % (64 * DeniedEntries::stretch_words));
}

std::uint64_t DeniedNumbers::bytes_per_query(const DeniedIds& denied) {
  if (!denied.any()) return 0;
  return DeniedEntries::slots_for(denied.longest()) *
             (sizeof(std::uint32_t) + DeniedEntries::bits_per_slot / 8) +
         sizeof(std::size_t) + sizeof(std::uint32_t) + DeniedEntries::stretch_words * sizeof(std::uint64_t);
}

}  // namespace nearwise::index
