// Decoding and reconstruction error, shared by all quantizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

struct Decoder {
  std::size_t dim = 0;
  std::function<void(std::span<const std::uint8_t> code, float* row)> decode;  // thread-safe
};

// Without argument checks; progress counts rows, and may be null.
void decode_codes(const Context& context, const Decoder& decoder, const MatrixView<const std::uint8_t>& codes,
                  const MatrixView<float>& rows, ProgressMeter* progress);

std::uint64_t coding_error_bytes(const Context& context, std::size_t rows, std::size_t dim);

// Sum of squared reconstruction errors, in f64 and a fixed order.
double coding_error(const Context& context, const RowsView& rows, const Decoder& decoder,
                    const MatrixView<const std::uint8_t>& codes);

// decode() of a quantizer: checks arguments and the memory limit in the name of `operation`.
Matrix<float> decode_as(const char* operation, const Context& context, const Decoder& decoder,
                        std::size_t code_bytes, const MatrixView<const std::uint8_t>& codes);

struct Encoder {
  std::size_t code_bytes = 0;
  std::uint64_t bytes = 0;  // on the budget
  // first_row: row number of the first, for messages.
  std::function<void(const RowsView& rows, std::size_t first_row, const MatrixView<std::uint8_t>& codes,
                     ProgressMeter* progress)>
      encode;
};

// error() of a quantizer, in the name of `operation`: mean squared error of rows whose dimension and place
// are checked.
double mean_error(const char* operation, const Context& context, const RowsView& rows, const Encoder& encoder,
                  const Decoder& decoder);

}  // namespace nearwise::quantize
