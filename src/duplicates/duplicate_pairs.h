// Pairs of duplicates, seen from both of their rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory.h"
#include "nearwise/exact.h"
#include "nearwise/types.h"

namespace nearwise::duplicates {

struct Duplicate {
  std::uint32_t row;
  float key;  // sort_key: smaller is nearer
};

class DuplicatePairs {
 public:
  // Throws Error(invalid_argument) unless the pairs are as threshold_join() returns them.
  DuplicatePairs(MemoryBudget& budget, const RangeNeighbors& pairs, Metric metric);

  static std::uint64_t bytes(std::size_t rows, std::size_t pairs);

  std::size_t rows() const { return ends_.size(); }
  // The duplicates of a row, ascending.
  std::span<const Duplicate> of(std::size_t row) const {
    const std::size_t first = row == 0 ? 0 : ends_[row - 1];
    return duplicates_.span().subspan(first, ends_[row] - first);
  }

 private:
  Buffer<std::size_t> ends_;  // [rows]
  Buffer<Duplicate> duplicates_;
};

}  // namespace nearwise::duplicates
