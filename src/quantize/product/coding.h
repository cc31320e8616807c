// Product codes of rows and rows of codes, without argument checks and with progress of the caller's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/ops.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "quantize/decoding.h"

namespace nearwise::quantize {

// `operation` is the caller's, for messages; progress counts rows, and may be null.

// Bytes on the budget.
std::uint64_t encode_bytes(const char* operation, const Context& context, const Codebooks& codebooks);

// Refuses rows with NaN or infinity; first_row is the number of the first.
void encode_rows(const char* operation, const Context& context, const RowsView& rows, std::size_t first_row,
                 const Codebooks& codebooks, const MatrixView<std::uint8_t>& codes, ProgressMeter* progress);

// Refers to the codewords.
Decoder decoder_of(const Codebooks& codebooks);

}  // namespace nearwise::quantize
