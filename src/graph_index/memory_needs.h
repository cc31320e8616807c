// What building and changing a graph index need of a memory limit: checked before work begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/filter.h"
#include "graph_index/graph_rows.h"
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

// GraphRows::with_capacity() for rows such as these.
std::uint64_t capacity_bytes(const GraphRows& rows, std::size_t count);
// Upper bound of insert_edges() for a batch of new rows, in addition to the rows. count: of all rows.
std::uint64_t inserting_bytes(const Context& context, const GraphRows& rows, std::size_t count,
                              std::size_t batch);
// Of the steps that follow some of the changes: a new entry tree, and connect_rows().
std::uint64_t connecting_bytes(const Context& context, const GraphRows& rows, std::size_t count);
// Of compacted(), in addition to both graphs. live: of these rows. added: live rows that follow them.
std::uint64_t compacting_bytes(const Context& context, const GraphRows& rows, const RowBits& live,
                               std::size_t added = 0);

}  // namespace nearwise::graph_index
