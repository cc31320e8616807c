// Argument checks of product quantizers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/quantize/product_quantizer.h"
#include "quantize/product/train_codebooks.h"

namespace nearwise::quantize {

// Throws Error(invalid_argument) unless parts are 1 to dim and bits 4 or 8.
void check_shape(const char* operation, std::size_t dim, std::size_t parts, unsigned bits);

// Checks rows (except their values) and options of a training, and fills in the default number of parts.
CodebookTraining check_training(const char* operation, const Context& context, const RowsView& rows,
                                const ProductQuantizerOptions& options);

// Throws Error(invalid_argument) unless codes are on the host, do not overlap and have code_bytes columns.
void check_codes(const char* operation, const MatrixView<const std::uint8_t>& codes, std::size_t code_bytes);

// Throws Error(invalid_argument) for metrics that are not sums over parts.
void check_table_metric(const char* operation, Metric metric);

std::size_t max_training_rows(const ProductQuantizerOptions& options);

}  // namespace nearwise::quantize
