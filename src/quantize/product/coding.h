// Encoding and decoding of product codes, without argument checks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/ops.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "quantize/decoding.h"

namespace nearwise::quantize {

// `operation` is for messages; progress counts rows and may be null.

// Memory charged to the budget.
std::uint64_t encode_bytes(const char* operation, const Context& context, const Codebooks& codebooks);

// Throws Error(invalid_argument) for NaN or infinity; first_row is the row number of the first.
void encode_rows(const char* operation, const Context& context, const RowsView& rows, std::size_t first_row,
                 const Codebooks& codebooks, const MatrixView<std::uint8_t>& codes, ProgressMeter* progress);

// Holds a reference to the codewords.
Decoder decoder_of(const Codebooks& codebooks);

}  // namespace nearwise::quantize
