// What searches read of a filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/denied_ids.h"
#include "nearwise/filter.h"

namespace nearwise {

// One bit for each of consecutive rows.
struct RowBits {
  const std::uint64_t* words = nullptr;  // null: every row
  std::size_t first = 0;                 // bit of row 0

  bool any() const { return words != nullptr; }
  bool contains(std::size_t row) const {
    return words == nullptr || (words[(first + row) / 64] >> ((first + row) % 64) & 1U) != 0;
  }
  // Of rows [row, row + 16), which must have bits. The lowest bit is that of `row`.
  std::uint16_t sixteen(std::size_t row) const {
    const std::size_t bit = first + row;
    const std::size_t shift = bit % 64;
    const std::uint64_t low = words[bit / 64] >> shift;
    return static_cast<std::uint16_t>(shift <= 48 ? low : low | words[bit / 64 + 1] << (64 - shift));
  }
  RowBits from_row(std::size_t row) const { return {words, first + row}; }
};

struct Filter::State {
  // Listed ids are allowed or, with `denies`, all others. As bits where they are dense, else as a list.
  bool is_shared = false;
  bool denies = false;
  std::vector<std::uint64_t> bits;
  std::vector<Id> ids;  // ascending
  std::size_t listed = 0;

  enum class PerQuery : std::uint8_t { none, allow, deny };
  PerQuery per_query = PerQuery::none;
  std::vector<std::size_t> offsets;  // [queries + 1]
  std::vector<Id> query_ids;         // ascending for each query

  // What one index derived from this filter, until another does or it changes.
  mutable std::mutex mutex;
  mutable std::uint64_t derived_for = 0;
  mutable Id derived_first = 0;  // Filter::from_id()
  mutable std::shared_ptr<const void> derived;

  bool is_listed(Id id) const;
  bool allows_shared(Id id) const { return !is_shared || is_listed(id) != denies; }
};

struct FilterInternals {
  using State = Filter::State;
  using PerQuery = State::PerQuery;

  static bool is_shared(const Filter& filter) { return filter.state_ != nullptr && filter.state_->is_shared; }
  static PerQuery per_query(const Filter& filter) {
    return filter.state_ == nullptr ? PerQuery::none : filter.state_->per_query;
  }
  // The per-query lists that deny; rows are ids of this filter.
  static DeniedIds denied(const Filter& filter);
  // The ids that a query's own list names, ascending; those that a mask denies are not among them.
  static std::vector<Id> allowed(const Filter& filter, std::size_t query);
  static bool allows_shared(const Filter& filter, Id id) {
    return filter.state_ == nullptr || filter.state_->allows_shared(id + filter.first_id_);
  }
  // Of an allowing list that is not held as bits: its ids. Empty otherwise.
  static std::span<const Id> listed(const Filter& filter);

  // Allows the ids whose bits are set.
  static Filter of_bits(std::span<const std::uint64_t> words);
  // Of all queries, ids in [0, count).
  static std::size_t count(const Filter& filter, std::size_t count);
  // Sets the bits of allowed ids [0, count); words: [count / 64 + 2] out.
  static void write_bits(const Filter& filter, std::size_t count, std::uint64_t* words);

  // A key of derive() that no other object has.
  static std::uint64_t new_key() noexcept;
  // What make() returned for this key, which is not 0, the last time, or else now. Any thread may call it.
  template <typename T, typename Make>
  static std::shared_ptr<const T> derive(const Filter& filter, std::uint64_t key, const Make& make) {
    if (std::shared_ptr<const void> known = derived(filter, key))
      return std::static_pointer_cast<const T>(known);
    std::shared_ptr<const T> made = make();
    keep_derived(filter, key, made);
    return made;
  }

 private:
  static std::shared_ptr<const void> derived(const Filter& filter, std::uint64_t key);
  static void keep_derived(const Filter& filter, std::uint64_t key, std::shared_ptr<const void> made);
};

}  // namespace nearwise
