// What building a graph index needs of a memory limit: checked before work begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "nearwise/context.h"
#include "nearwise/graph_index.h"
#include "nearwise/matrix.h"

namespace nearwise::graph_index {

// Upper bound on the budget, including the index. given_length: of the lists of a given k-NN graph; none: the
// graph is built.
std::uint64_t building_bytes(const Context& context, const RowsView& rows, const GraphIndexOptions& options,
                             const std::optional<GraphCalibrationOptions>& calibration,
                             std::optional<std::size_t> given_length = {});

// Of EntryTree::train() on these codes.
std::uint64_t entry_tree_bytes(const Context& context, const RowsView& codes);
// Of a calibration, in addition to the index.
std::uint64_t calibrating_bytes(const Context& context, const RowsView& rows,
                                const GraphCalibrationOptions& calibration);

}  // namespace nearwise::graph_index
