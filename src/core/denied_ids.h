// Ids that single queries must not return.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/types.h"

namespace nearwise {

struct DeniedIds {
  std::span<const std::size_t> offsets = {};  // [queries + 1] into `ids`; empty: nothing is denied
  std::span<const Id> ids = {};               // ascending for each query
  Id first_id = 0;                            // of row 0
  const std::uint32_t* numbers = nullptr;     // of gathered rows: row i is row numbers[i] of those before

  bool any() const { return !offsets.empty(); }
  std::span<const Id> of(std::size_t query) const {
    return any() ? ids.subspan(offsets[query], offsets[query + 1] - offsets[query]) : std::span<const Id>();
  }
  bool contains(std::size_t query, std::size_t row) const {
    return any() && std::ranges::binary_search(
                        of(query), static_cast<Id>(numbers == nullptr ? row : numbers[row]) + first_id);
  }
  // For rows that start at row `first`.
  DeniedIds from_row(std::size_t first) const {
    DeniedIds moved = *this;
    if (numbers == nullptr)
      moved.first_id += static_cast<Id>(first);
    else
      moved.numbers += first;
    return moved;
  }
  DeniedIds of_gathered(const std::uint32_t* rows) const {
    DeniedIds gathered = *this;
    gathered.numbers = rows;
    return gathered;
  }
  std::size_t longest() const {
    std::size_t most = 0;
    for (std::size_t query = 0; query + 1 < offsets.size(); ++query) most = std::max(most, of(query).size());
    return most;
  }
  // For queries [first, first + count).
  DeniedIds from_query(std::size_t first, std::size_t count) const {
    DeniedIds slice = *this;
    if (any()) slice.offsets = offsets.subspan(first, count + 1);
    return slice;
  }
};

}  // namespace nearwise
