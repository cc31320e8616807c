// threshold_join() as a part of other operations.
#pragma once

#include <cstdint>

#include "nearwise/threshold_join.h"

namespace nearwise {

// kept_free: bytes that the caller will need next to the pairs; a refused memory limit names one that
// suffices for both.
RangeNeighbors join_rows(const char* operation, const Context& context, const RowsView& rows, float threshold,
                         Metric metric, std::uint64_t kept_free);

}  // namespace nearwise
