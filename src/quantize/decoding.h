// Rows of codes, whichever quantizer made them, and their distance from the rows that were encoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

// Decoding of codes.
struct Decoder {
  std::size_t dim = 0;
  std::function<void(std::span<const std::uint8_t> code, float* row)> decode;  // of one code, on any thread
};

// Without argument checks; progress counts rows, and may be null.
void decode_codes(const Context& context, const Decoder& decoder, const MatrixView<const std::uint8_t>& codes,
                  const MatrixView<float>& rows, ProgressMeter* progress);

std::uint64_t coding_error_bytes(const Context& context, std::size_t rows, std::size_t dim);

// Sum of squared distances of vectors to their reconstructions, in f64 and a fixed order.
double coding_error(const Context& context, const RowsView& rows, const Decoder& decoder,
                    const MatrixView<const std::uint8_t>& codes);

// A quantizer's decode() as `operation`: arguments checked, within the memory limit.
Matrix<float> decode_as(const char* operation, const Context& context, const Decoder& decoder,
                        std::size_t code_bytes, const MatrixView<const std::uint8_t>& codes);

// How the codes are made whose error is asked for.
struct Encoder {
  std::size_t code_bytes = 0;
  std::uint64_t bytes = 0;  // on the budget
  // first_row: the number of the first, for messages.
  std::function<void(const RowsView& rows, std::size_t first_row, const MatrixView<std::uint8_t>& codes,
                     ProgressMeter* progress)>
      encode;
};

// A quantizer's error() as `operation`, of rows whose dimension and place are checked: the mean squared
// distance.
double mean_error(const char* operation, const Context& context, const RowsView& rows, const Encoder& encoder,
                  const Decoder& decoder);

}  // namespace nearwise::quantize
