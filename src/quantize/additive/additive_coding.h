// Encoding and decoding of additive codes, without argument checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/ops.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "quantize/decoding.h"

namespace nearwise::quantize {

// `operation` is for messages; progress counts rows and may be null. Bytes of a code after those of the
// codebooks are not touched.

// Memory charged to the budget.
std::uint64_t additive_encode_bytes(const char* operation, const Context& context,
                                    const AdditiveCodebooks& codebooks);

// Expected duration for shares of progress, as cluster::training_cost().
double additive_encode_cost(std::size_t rows, std::size_t dim, std::size_t codebooks, std::size_t iterations);

// Rows are finite. `codes`: [rows, codebooks].
void encode_additive_rows(const char* operation, const Context& context, const RowsView& rows,
                          const AdditiveCodebooks& codebooks, const AdditiveEncodeOptions& options,
                          const MatrixView<std::uint8_t>& codes, ProgressMeter* progress);

// Holds a reference to the codewords.
Decoder decoder_of(const AdditiveCodebooks& codebooks);

// out [codes]: squared norms of the reconstructions, computed in f64, rounded once, at most FLT_MAX.
void additive_norms(const Context& context, const AdditiveCodebooks& codebooks,
                    const MatrixView<const std::uint8_t>& codes, std::span<float> out);

}  // namespace nearwise::quantize
