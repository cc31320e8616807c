// Additive codes of rows and rows of codes, without argument checks and with progress of the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/ops.h"
#include "core/progress.h"
#include "nearwise/additive_quantizer.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

// `operation` is the caller's, for messages; progress counts rows, and may be null. Codes may have bytes behind the last
// codebook's: they are left alone.

// Bytes on the budget.
std::uint64_t additive_encode_bytes(const char* operation, const Context& context,
                                    const AdditiveCodebooks& codebooks);

// Rows are finite. `codes`: [rows, codebooks].
void encode_additive_rows(const char* operation, const Context& context, const RowsView& rows,
                          const AdditiveCodebooks& codebooks, const AdditiveEncodeOptions& options,
                          const MatrixView<std::uint8_t>& codes, ProgressMeter* progress);

void decode_additive_codes(const Context& context, const AdditiveCodebooks& codebooks,
                           const MatrixView<const std::uint8_t>& codes, const MatrixView<float>& rows,
                           ProgressMeter* progress);

// out [codes]: the squared lengths of what codes stand for, in f64, rounded once; the largest number for longer ones.
void additive_norms(const Context& context, const AdditiveCodebooks& codebooks,
                    const MatrixView<const std::uint8_t>& codes, std::span<float> out);

std::uint64_t additive_error_bytes(const RowsView& rows);

// The sum of the squared distances of rows from what their codes stand for, in f64 and a fixed order.
double additive_error(const Context& context, const RowsView& rows, const AdditiveCodebooks& codebooks,
                      const MatrixView<const std::uint8_t>& codes);

}  // namespace nearwise::quantize
