// threshold_join() as a part of other operations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/threshold_join.h"

namespace nearwise {

// Consecutive rows.
struct RowRange {
  std::size_t first = 0;
  std::size_t count = 0;

  std::size_t end() const { return first + count; }
};

// The pairs of a row of `left` with a later one of `right`, by their numbers in `rows`; the answers of row i
// are those of left.first + i. `left` lies in `right` or before it. Other rows are not read. kept_free: bytes
// that the caller will need next to the pairs; a refused memory limit names one that suffices for both.
RangeNeighbors join_rows(const char* operation, const Context& context, const RowsView& rows, RowRange left,
                         RowRange right, float threshold, Metric metric, std::uint64_t kept_free);

}  // namespace nearwise
