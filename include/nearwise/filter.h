// The ids that a search may return.
//
// A filter is built once, shared by any number of searches and threads, and cheap to copy. In exact search an
// id is a row number. Masks and lists apply to all queries; a per-query list applies to one query, for
// example the known positives that a search for hard negatives must not return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "nearwise/export.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

class Filter {
 public:
  // Allows every id.
  Filter() = default;

  // mask[i] != 0: id i is allowed. Ids beyond the mask are denied. Stored as one bit per element.
  static Filter mask(std::span<const std::uint8_t> mask);
  // Only these ids, or all but these: not negative, in any order; repeated ids count once.
  static Filter allow(std::span<const Id> ids);
  static Filter deny(std::span<const Id> ids);
  // Query q: ids[offsets[q] .. offsets[q + 1]). A search must have offsets.size() - 1 queries.
  static Filter allow_per_query(std::span<const std::size_t> offsets, std::span<const Id> ids);
  static Filter deny_per_query(std::span<const std::size_t> offsets, std::span<const Id> ids);

  // Allows what both allow. Throws Error(invalid_argument) if they are for different numbers of queries, or
  // if one was made by from_id() or from_query().
  Filter operator&(const Filter& other) const;

  bool is_trivial() const { return state_ == nullptr; }  // allows every id
  bool allows(Id id, std::size_t query = 0) const;
  // The number of queries of per-query lists; nullopt: valid for any number of queries.
  std::optional<std::size_t> queries() const;

  // For parts of a search: id 0 of the returned filter is id `first` of this one.
  Filter from_id(Id first) const;
  // Query 0 of the returned filter is query `first` of this one.
  Filter from_query(std::size_t first, std::size_t count) const;

 private:
  struct State;
  friend struct FilterInternals;  // src/core/filter.h

  std::shared_ptr<const State> state_ = {};
  Id first_id_ = 0;
  std::size_t first_query_ = 0;
  std::size_t query_count_ = 0;
};

}  // namespace nearwise
