#include "ivf/filter/denied_entries.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"

namespace nearwise::ivf {
namespace {

constexpr std::size_t task_queries = 64;

// The nearest of the probed lists of a query are near, until they hold this share of all entries.
constexpr double most_near = 0.25;

enum class Probed : std::uint8_t { no, yes, near };

// Finds the number of the entry with an id. Any number of threads may call it.
class EntryFinder {
 public:
  // lookups: expected. The lists are those of the index, or copies of some of their entries.
  EntryFinder(const IvfInternals::State& state, const ListSearch::Tile& tile, std::size_t lookups)
      : state_(state),
        tile_(tile),
        numbers_(tile.lists.data() == state.rows.views().data() ? state.entry_numbers(lookups) : nullptr),
        firsts_(tile.lists.size() + 1) {
    for (std::size_t list = 0; list < tile.lists.size(); ++list)
      firsts_[list + 1] = firsts_[list] + tile.lists[list].rows;
    if (numbers_ == nullptr) {
      static_cast<void>(state.ids());  // made here, not by every thread
      return;
    }
    std::uint32_t list = 0;
    for (std::size_t number = 0; number < firsts_.back(); number += numbers_per_hint) {
      while (firsts_[list + 1] <= number) ++list;
      hints_.push_back(list);
    }
  }

  struct Found {
    bool is_held = false;                      // the index has an entry with this id
    bool is_near = false;                      // which is in a near list
    std::optional<std::uint32_t> number = {};  // if it is in a probed list
  };
  Found find(Id id, const std::vector<Probed>& lists) const {
    if (numbers_ != nullptr) {
      const std::optional<std::uint32_t> number = numbers_->find(id);
      if (!number) return {};
      std::size_t list = hints_[*number / numbers_per_hint];
      while (firsts_[list + 1] <= *number) ++list;
      return {true, lists[list] == Probed::near, lists[list] == Probed::no ? std::nullopt : number};
    }
    const std::optional<std::uint32_t> list = state_.ids().find(id);
    if (!list) return {};
    if (lists[*list] == Probed::no) return {true};
    const ListView& view = tile_.lists[*list];
    const Id* const entry = std::find(view.ids, view.ids + view.rows, id);
    if (entry == view.ids + view.rows) return {true};
    return {true, lists[*list] == Probed::near,
            static_cast<std::uint32_t>(firsts_[*list] + static_cast<std::size_t>(entry - view.ids))};
  }

 private:
  static constexpr std::size_t numbers_per_hint = 256;

  const IvfInternals::State& state_;
  const ListSearch::Tile& tile_;
  const index::IdTable* const numbers_;
  std::vector<std::size_t> firsts_;   // [lists + 1] number of the first entry
  std::vector<std::uint32_t> hints_;  // with `numbers_`: the list of every 256th
};

// Excluded entries that are neighbours of the query, if `count` of all those excluded are in the near lists.
// Entries that have nothing to do with the query are there by chance, by the share of all that these hold.
std::uint32_t neighbors_of(std::size_t count, std::size_t excluded, double share) {
  const double chance = static_cast<double>(excluded) * share;
  const double rest = static_cast<double>(count) - chance;
  if (rest <= 1 + 3 * std::sqrt(chance)) return 0;
  return static_cast<std::uint32_t>(std::min(std::ceil(rest / (1 - share)), static_cast<double>(count)));
}

}  // namespace

DeniedNumbers::DeniedNumbers(const Context& context, const IvfInternals::State& state,
                             const ListSearch::Tile& tile, const DeniedIds& denied) {
  if (!denied.any()) return;
  const std::size_t queries = tile.probes.rows();
  MemoryBudget& budget = *context.state().budget;
  offsets_ = Buffer<std::size_t>(budget, queries + 1);
  counts_ = Buffer<std::uint32_t>(budget, queries);
  near_ = Buffer<std::uint32_t>(budget, queries);
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
    std::vector<Probed> lists(tile.lists.size());
    const auto all_rows = static_cast<double>(state.rows.rows());
    for (std::size_t query = first; query < end; ++query) {
      double near_rows = 0;
      for (const Id number : tile.probes.row(query)) {
        if (number == no_id) continue;
        const auto list = static_cast<std::size_t>(number);
        lists[list] = near_rows < most_near * all_rows ? Probed::near : Probed::yes;
        if (lists[list] == Probed::near) near_rows += static_cast<double>(tile.lists[list].rows);
      }
      std::size_t held = 0;
      std::size_t near = 0;
      for (const Id id : denied.of(query)) {
        const EntryFinder::Found found = finder.find(id, lists);
        held += found.is_held ? 1 : 0;
        near += found.is_near ? 1 : 0;
        if (found.number) insert(query, *found.number);
      }
      for (const Id list : tile.probes.row(query))
        if (list != no_id) lists[static_cast<std::size_t>(list)] = Probed::no;
      near_[query] = near == 0 ? 0 : neighbors_of(near, held, near_rows / all_rows);
    }
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
         sizeof(std::size_t) + 2 * sizeof(std::uint32_t) +
         DeniedEntries::stretch_words * sizeof(std::uint64_t);
}

}  // namespace nearwise::ivf
