#include "core/filter.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "core/fork.h"

namespace nearwise {
namespace {

using State = FilterInternals::State;
using PerQuery = FilterInternals::PerQuery;

constexpr std::size_t word_bits = 64;
// Ids become bits if that takes at most twice the memory of a list.
constexpr std::size_t max_words_per_id = 2;

void set_bit(std::vector<std::uint64_t>& words, std::size_t bit) {
  words[bit / word_bits] |= std::uint64_t{1} << (bit % word_bits);
}

// Bit i: byte i is not 0. Masks may have billions of them.
std::uint8_t bits_of_bytes(const std::uint8_t* bytes) {
  constexpr std::uint64_t low_seven = 0x7F7F7F7F7F7F7F7FU;
  std::uint64_t eight;
  std::memcpy(&eight, bytes, sizeof(eight));
  const std::uint64_t high_bits = (((eight & low_seven) + low_seven) | eight) & ~low_seven;
  // Collects bit 7 of every byte: byte i moves to bit i of the top byte, without carries.
  return static_cast<std::uint8_t>((high_bits >> 7U) * 0x0102040810204080U >> 56U);
}

std::vector<Id> sorted(std::span<const Id> ids) {
  std::vector<Id> list(ids.begin(), ids.end());
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  const Id lowest = list.empty() ? 0 : list.front();
  require(lowest >= 0, "Filter: ids must not be negative, got {}", lowest);
  return list;
}

void set_listed(State& state, std::vector<Id> ids) {
  state.is_shared = true;
  state.listed = ids.size();
  const std::size_t words = ids.empty() ? 0 : static_cast<std::size_t>(ids.back()) / word_bits + 1;
  if (words > max_words_per_id * ids.size()) {
    state.ids = std::move(ids);
    return;
  }
  state.bits.assign(words, 0);
  for (const Id id : ids) set_bit(state.bits, static_cast<std::size_t>(id));
}

void set_lists(State& state, PerQuery kind, std::span<const std::size_t> offsets, std::span<const Id> ids) {
  require(!offsets.empty() && offsets.front() == 0 && offsets.back() == ids.size() &&
              std::ranges::is_sorted(offsets),
          "Filter: offsets must rise from 0 to the number of ids, {}, got {} offsets", ids.size(),
          offsets.size());
  state.per_query = kind;
  state.offsets.reserve(offsets.size());
  state.offsets.push_back(0);
  for (std::size_t query = 0; query + 1 < offsets.size(); ++query) {
    const std::vector<Id> own = sorted(ids.subspan(offsets[query], offsets[query + 1] - offsets[query]));
    state.query_ids.insert(state.query_ids.end(), own.begin(), own.end());
    state.offsets.push_back(state.query_ids.size());
  }
}

// Clears the bits of ids that `rest` does not allow.
void keep_allowed(std::vector<std::uint64_t>& bits, const State& rest) {
  if (!rest.bits.empty()) {
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const std::uint64_t listed = i < rest.bits.size() ? rest.bits[i] : 0;
      bits[i] &= rest.denies ? ~listed : listed;
    }
    return;
  }
  const std::vector<std::uint64_t> before = rest.denies ? std::vector<std::uint64_t>() : bits;
  if (!rest.denies) std::ranges::fill(bits, 0);
  for (const Id id : rest.ids) {
    const auto bit = static_cast<std::size_t>(id);
    if (bit / word_bits >= bits.size()) break;  // ascending
    const std::uint64_t mask = std::uint64_t{1} << (bit % word_bits);
    if (rest.denies)
      bits[bit / word_bits] &= ~mask;
    else
      bits[bit / word_bits] |= before[bit / word_bits] & mask;
  }
}

// Bit i of the result is bit first + i of the words; 0 beyond their end.
std::uint64_t word_at(std::span<const std::uint64_t> words, std::size_t first) {
  const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : 0; };
  const std::size_t shift = first % word_bits;
  const std::uint64_t low = word(first / word_bits) >> shift;
  return shift == 0 ? low : low | word(first / word_bits + 1) << (word_bits - shift);
}

}  // namespace

bool Filter::State::is_listed(Id id) const {
  if (bits.empty()) return std::ranges::binary_search(ids, id);
  const auto bit = static_cast<std::size_t>(id);
  return bit / word_bits < bits.size() && (bits[bit / word_bits] >> (bit % word_bits) & 1U) != 0;
}

Filter Filter::mask(std::span<const std::uint8_t> mask) {
  auto state = std::make_shared<State>();
  state->is_shared = true;
  state->bits.assign(mask.size() / word_bits + 1, 0);
  const std::size_t whole = mask.size() / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8)
    state->bits[i / word_bits] |= std::uint64_t{bits_of_bytes(mask.data() + i)} << (i % word_bits);
  for (std::size_t i = whole; i < mask.size(); ++i)
    state->bits[i / word_bits] |= std::uint64_t{mask[i] != 0} << (i % word_bits);
  for (const std::uint64_t word : state->bits) state->listed += static_cast<std::size_t>(std::popcount(word));
  Filter filter;
  filter.state_ = std::move(state);
  return filter;
}

Filter Filter::allow(std::span<const Id> ids) {
  auto state = std::make_shared<State>();
  set_listed(*state, sorted(ids));
  Filter filter;
  filter.state_ = std::move(state);
  return filter;
}

Filter Filter::deny(std::span<const Id> ids) {
  if (ids.empty()) return {};
  auto state = std::make_shared<State>();
  set_listed(*state, sorted(ids));
  state->denies = true;
  Filter filter;
  filter.state_ = std::move(state);
  return filter;
}

Filter Filter::allow_per_query(std::span<const std::size_t> offsets, std::span<const Id> ids) {
  auto state = std::make_shared<State>();
  set_lists(*state, State::PerQuery::allow, offsets, ids);
  Filter filter;
  filter.state_ = std::move(state);
  filter.query_count_ = offsets.size() - 1;
  return filter;
}

Filter Filter::deny_per_query(std::span<const std::size_t> offsets, std::span<const Id> ids) {
  auto state = std::make_shared<State>();
  set_lists(*state, State::PerQuery::deny, offsets, ids);
  Filter filter;
  filter.state_ = std::move(state);
  filter.query_count_ = offsets.size() - 1;
  return filter;
}

bool Filter::allows(Id id, std::size_t query) const {
  if (state_ == nullptr) return true;
  if (!state_->allows_shared(id + first_id_)) return false;
  if (state_->per_query == State::PerQuery::none) return true;
  const std::size_t own = first_query_ + query;
  const auto* const ids = state_->query_ids.data();
  const bool listed =
      std::binary_search(ids + state_->offsets[own], ids + state_->offsets[own + 1], id + first_id_);
  return listed == (state_->per_query == State::PerQuery::allow);
}

std::optional<std::size_t> Filter::queries() const {
  if (state_ == nullptr || state_->per_query == State::PerQuery::none) return {};
  return query_count_;
}

Filter Filter::from_id(Id first) const {
  Filter moved = *this;
  moved.first_id_ += first;
  return moved;
}

Filter Filter::from_query(std::size_t first, std::size_t count) const {
  Filter slice = *this;
  slice.first_query_ += first;
  slice.query_count_ = count;
  return slice;
}

Filter Filter::operator&(const Filter& other) const {
  if (is_trivial()) return other;
  if (other.is_trivial()) return *this;
  require(first_id_ == 0 && other.first_id_ == 0 && first_query_ == 0 && other.first_query_ == 0,
          "Filter: parts of filters cannot be combined");
  require(!queries() || !other.queries() || queries() == other.queries(),
          "Filter: both must be for the same number of queries, got {} and {}", queries().value_or(0),
          other.queries().value_or(0));
  const State& left = *state_;
  const State& right = *other.state_;
  auto state = std::make_shared<State>();
  if (left.is_shared && right.is_shared) {
    // A list of ids that are allowed bounds the result, and so does a mask; two that deny have no bound.
    state->is_shared = true;
    if (left.denies && right.denies) {
      std::vector<Id> both;
      for (const State* const one : {&left, &right}) {
        both.insert(both.end(), one->ids.begin(), one->ids.end());
        for (std::size_t bit = 0; bit < one->bits.size() * word_bits; ++bit)
          if (one->is_listed(static_cast<Id>(bit))) both.push_back(static_cast<Id>(bit));
      }
      set_listed(*state, sorted(both));
      state->denies = true;
    } else {
      const State& bounded = left.denies ? right : left;
      const State& rest = left.denies ? left : right;
      if (bounded.bits.empty()) {
        std::vector<Id> both;
        std::ranges::copy_if(bounded.ids, std::back_inserter(both),
                             [&](Id id) { return rest.allows_shared(id); });
        set_listed(*state, std::move(both));
      } else {
        state->bits = bounded.bits;
        keep_allowed(state->bits, rest);
        for (const std::uint64_t word : state->bits)
          state->listed += static_cast<std::size_t>(std::popcount(word));
      }
    }
  } else if (left.is_shared || right.is_shared) {
    const State& shared = left.is_shared ? left : right;
    state->is_shared = true;
    state->denies = shared.denies;
    state->bits = shared.bits;
    state->ids = shared.ids;
    state->listed = shared.listed;
  }
  if (left.per_query == PerQuery::none || right.per_query == PerQuery::none) {
    const State& own = left.per_query == PerQuery::none ? right : left;
    state->per_query = own.per_query;
    state->offsets = own.offsets;
    state->query_ids = own.query_ids;
  } else {
    const bool denies = left.per_query == PerQuery::deny && right.per_query == PerQuery::deny;
    state->per_query = denies ? PerQuery::deny : PerQuery::allow;
    state->offsets.push_back(0);
    for (std::size_t query = 0; query < *queries(); ++query) {
      const std::span<const Id> mine(left.query_ids.data() + left.offsets[query],
                                     left.query_ids.data() + left.offsets[query + 1]);
      const std::span<const Id> its(right.query_ids.data() + right.offsets[query],
                                    right.query_ids.data() + right.offsets[query + 1]);
      const auto out = std::back_inserter(state->query_ids);
      if (denies)
        std::ranges::set_union(mine, its, out);
      else if (left.per_query == right.per_query)
        std::ranges::set_intersection(mine, its, out);
      else
        std::ranges::set_difference(left.per_query == PerQuery::allow ? mine : its,
                                    left.per_query == PerQuery::allow ? its : mine, out);
      state->offsets.push_back(state->query_ids.size());
    }
  }
  Filter both;
  both.state_ = std::move(state);
  both.query_count_ = std::max(query_count_, other.query_count_);
  return both;
}

Filter FilterInternals::of_bits(std::span<const std::uint64_t> words) {
  auto state = std::make_shared<State>();
  state->is_shared = true;
  state->bits.assign(words.begin(), words.end());
  if (words.empty()) state->bits.push_back(0);  // else they would be a list
  for (const std::uint64_t word : words) state->listed += static_cast<std::size_t>(std::popcount(word));
  Filter filter;
  filter.state_ = std::move(state);
  return filter;
}

DeniedIds FilterInternals::denied(const Filter& filter) {
  if (per_query(filter) != PerQuery::deny) return {};
  return {.offsets = std::span(filter.state_->offsets).subspan(filter.first_query_, filter.query_count_ + 1),
          .ids = filter.state_->query_ids,
          .first_id = filter.first_id_};
}

std::vector<Id> FilterInternals::allowed(const Filter& filter, std::size_t query) {
  const State& state = *filter.state_;
  const std::size_t own = filter.first_query_ + query;
  std::vector<Id> ids;
  for (std::size_t i = state.offsets[own]; i < state.offsets[own + 1]; ++i)
    if (state.query_ids[i] >= filter.first_id_ && state.allows_shared(state.query_ids[i]))
      ids.push_back(state.query_ids[i] - filter.first_id_);
  return ids;
}

std::span<const Id> FilterInternals::listed(const Filter& filter) {
  const bool is_list = is_shared(filter) && !filter.state_->denies && filter.state_->bits.empty();
  return is_list ? std::span<const Id>(filter.state_->ids) : std::span<const Id>();
}

std::size_t FilterInternals::count(const Filter& filter, std::size_t count) {
  if (!is_shared(filter)) return count;
  const State& state = *filter.state_;
  std::size_t listed = 0;
  if (state.bits.empty()) {
    const auto end = std::ranges::lower_bound(state.ids, filter.first_id_ + static_cast<Id>(count));
    listed = static_cast<std::size_t>(end - std::ranges::lower_bound(state.ids, filter.first_id_));
  } else {
    const auto first = static_cast<std::size_t>(filter.first_id_);
    const std::size_t whole = state.bits.size() * word_bits;
    for (std::size_t i = 0; i < count && first + i < whole; i += word_bits) {
      const std::uint64_t word = word_at(state.bits, first + i);
      const std::size_t rest = count - i;
      listed += static_cast<std::size_t>(
          std::popcount(rest >= word_bits ? word : word & ((std::uint64_t{1} << rest) - 1)));
    }
  }
  return state.denies ? count - listed : listed;
}

void FilterInternals::write_bits(const Filter& filter, std::size_t count, std::uint64_t* words) {
  const std::size_t word_count = count / word_bits + 1;
  const State& state = *filter.state_;
  if (state.bits.empty()) {
    std::fill_n(words, word_count, 0);
    const Id end = filter.first_id_ + static_cast<Id>(count);
    for (auto id = std::ranges::lower_bound(state.ids, filter.first_id_); id != state.ids.end() && *id < end;
         ++id) {
      const auto bit = static_cast<std::size_t>(*id - filter.first_id_);
      words[bit / word_bits] |= std::uint64_t{1} << (bit % word_bits);
    }
  } else {
    for (std::size_t i = 0; i < word_count; ++i)
      words[i] = word_at(state.bits, static_cast<std::size_t>(filter.first_id_) + i * word_bits);
  }
  if (state.denies)
    for (std::size_t i = 0; i < word_count; ++i) words[i] = ~words[i];
  words[word_count - 1] &= (std::uint64_t{1} << (count % word_bits)) - 1;
  words[word_count] = 0;
}

std::uint64_t FilterInternals::new_key() noexcept {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::shared_ptr<const void> FilterInternals::derived(const Filter& filter, std::uint64_t key) {
  const NoFork whole;
  const std::lock_guard lock(filter.state_->mutex);
  const State& state = *filter.state_;
  return state.derived_for == key && state.derived_first == filter.first_id_ ? state.derived : nullptr;
}

void FilterInternals::keep_derived(const Filter& filter, std::uint64_t key,
                                   std::shared_ptr<const void> made) {
  const NoFork whole;
  const std::lock_guard lock(filter.state_->mutex);
  filter.state_->derived_for = key;
  filter.state_->derived_first = filter.first_id_;
  filter.state_->derived = std::move(made);
}

}  // namespace nearwise
