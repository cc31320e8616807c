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
#include "quantize/decoding.h"

namespace nearwise::quantize {

// `operation` is the caller's, for messages; progress counts rows, and may be null. Codes may have bytes
// behind the last codebook's: they are left alone.

// Bytes on the budget.
std::uint64_t additive_encode_bytes(const char* operation, const Context& context,
                                    const AdditiveCodebooks& codebooks);

// Rows are finite. `codes`: [rows, codebooks].
void encode_additive_rows(const char* operation, const Context& context, const RowsView& rows,
                          const AdditiveCodebooks& codebooks, const AdditiveEncodeOptions& options,
                          const MatrixView<std::uint8_t>& codes, ProgressMeter* progress);

// Refers to the codewords.
Decoder decoder_of(const AdditiveCodebooks& codebooks);

// out [codes]: squared norms of the decoded vectors, in f64, rounded once; clamped to the largest f32.
void additive_norms(const Context& context, const AdditiveCodebooks& codebooks,
                    const MatrixView<const std::uint8_t>& codes, std::span<float> out);

}  // namespace nearwise::quantize
