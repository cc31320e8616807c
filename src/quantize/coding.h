// Codes of rows and rows of codes, without argument checks and with progress of the caller's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/ops.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

// `operation` is the caller's, for messages; progress counts rows, and may be null.

// Bytes on the budget.
std::uint64_t encode_bytes(const char* operation, const Context& context, const Codebooks& codebooks);

// Refuses rows with NaN or infinity; first_row is the number of the first.
void encode_rows(const char* operation, const Context& context, const RowsView& rows, std::size_t first_row,
                 const Codebooks& codebooks, const MatrixView<std::uint8_t>& codes, ProgressMeter* progress);

void decode_codes(const Context& context, const Codebooks& codebooks,
                  const MatrixView<const std::uint8_t>& codes, const MatrixView<float>& rows,
                  ProgressMeter* progress);

std::uint64_t coding_error_bytes(const Context& context, const RowsView& rows, const Codebooks& codebooks);

// The sum of the squared distances of rows from what their codes stand for, in f64 and a fixed order.
double coding_error(const Context& context, const RowsView& rows, const Codebooks& codebooks,
                    const MatrixView<const std::uint8_t>& codes);

}  // namespace nearwise::quantize
