// Offsets and steps of the codes that a graph is traversed by.
#pragma once

#include "codes/scalar_codec.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::graph_index {

// Of 8-bit codes: integers of 0 to 255 are their own codes; other vectors get the range, with or without
// outliers, that has the smallest squared error on a sample.
ScalarCodec train_codec(const Context& context, const RowsView& rows, Metric metric);
// What train_codec() takes of the budget.
std::uint64_t codec_training_bytes(const RowsView& rows, Metric metric);

// Adds 4-bit codes, by the spread of the 8-bit ones [rows, row_bytes].
void train_nibbles(ScalarCodec& codec, MatrixView<const std::uint8_t> codes);

}  // namespace nearwise::graph_index
