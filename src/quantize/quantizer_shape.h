// The shape of a product quantizer: what is asked for, checked.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/product_quantizer.h"
#include "quantize/train_codebooks.h"

namespace nearwise::quantize {

// Throws Error(invalid_argument) unless parts are 1 to dim and bits 4 or 8.
void check_shape(const char* operation, std::size_t dim, std::size_t parts, unsigned bits);

// Rows and options of a training, checked but for what the rows hold; parts are chosen where they are not given.
CodebookTraining check_training(const char* operation, const Context& context, const RowsView& rows,
                                const ProductQuantizerOptions& options);

// 0: all.
std::size_t most_training_rows(const ProductQuantizerOptions& options);

}  // namespace nearwise::quantize
