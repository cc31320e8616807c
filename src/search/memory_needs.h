// What building a graph index needs of a memory limit: checked before work begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "nearwise/context.h"
#include "nearwise/graph_index.h"
#include "nearwise/matrix.h"

namespace nearwise::search {

// Upper bound on the budget, including the index. given_length: of the lists of a given k-NN graph; none: the
// graph is built.
std::uint64_t building_bytes(const Context& context, const RowsView& rows, const GraphIndexOptions& options,
                             const std::optional<GraphCalibrationOptions>& calibration,
                             std::optional<std::size_t> given_length = {});

}  // namespace nearwise::search
