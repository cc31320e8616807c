#include "codes/scalar_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/convert.h"

namespace nearwise {
namespace {

constexpr double max_byte = 255;
constexpr double max_nibble = 15;
// 4-bit codes count as their sixteenfold, so that queries keep 4 more bits.
constexpr double nibble_scale = 16;

// Sums of squares in f64, elements in order.
double squared_length(const double* vector, std::size_t dim) {
  double sum = 0;
  for (std::size_t i = 0; i < dim; ++i) sum += vector[i] * vector[i];
  return sum;
}

void scale(double* vector, std::size_t dim, double factor) {
  for (std::size_t i = 0; i < dim; ++i) vector[i] *= factor;
}

std::int16_t query_code(double value, double range) {
  return static_cast<std::int16_t>(std::clamp(std::nearbyint(value), -range, 2 * range));
}

}  // namespace

bool ScalarCodec::is_exact() const {
  const bool is_euclidean = metric == Metric::sqeuclidean || metric == Metric::euclidean;
  return is_euclidean && step == 1 &&
         std::ranges::all_of(offsets, [](float offset) { return offset == 0 || offset == -128; });
}

void ScalarCodec::transform(const RowsView& rows, std::size_t row, double* out) const {
  row_to_double(rows, row, out);
  if (metric == Metric::cosine) {
    const double length = std::sqrt(squared_length(out, dim));
    if (length > 0) scale(out, dim, 1 / length);
  } else if (metric == Metric::inner_product) {
    out[dim] = std::sqrt(std::max(0.0, max_norm - squared_length(out, dim)));
  }
}

void ScalarCodec::encode(const RowsView& rows, std::size_t row, double* scratch, std::uint8_t* code) const {
  transform(rows, row, scratch);
  for (std::size_t i = 0; i < code_dim(); ++i)
    code[i] = static_cast<std::uint8_t>(
        std::clamp(std::nearbyint((scratch[i] - static_cast<double>(offsets[i])) / static_cast<double>(step)),
                   0.0, max_byte));
  std::memset(code + code_dim(), 0, row_bytes() - code_dim());
}

void ScalarCodec::encode_query(const RowsView& queries, std::size_t query, double* scratch,
                               std::int16_t* byte_query, std::int16_t* nibble_query) const {
  if (metric == Metric::inner_product) {
    // The order of products does not depend on the query's length: that of the vectors has room in the codes.
    row_to_double(queries, query, scratch);
    const double norm = squared_length(scratch, dim);
    if (norm > 0) scale(scratch, dim, std::sqrt(max_norm / norm));
    scratch[dim] = 0;
  } else {
    transform(queries, query, scratch);
  }
  for (std::size_t i = 0; i < code_dim(); ++i) {
    const double value = (scratch[i] - static_cast<double>(offsets[i])) / static_cast<double>(step);
    byte_query[i] = query_code(value, max_byte);
    if (has_nibbles()) {
      const double nibble =
          (value - static_cast<double>(nibble_offsets[i])) / static_cast<double>(nibble_step);
      nibble_query[i] = query_code(nibble * nibble_scale, max_nibble * nibble_scale);
    }
  }
  std::fill(byte_query + code_dim(), byte_query + row_bytes(), std::int16_t{0});
  if (has_nibbles())
    std::fill(nibble_query + code_dim(), nibble_query + nibble_query_size(), std::int16_t{0});
}

void ScalarCodec::encode_nibbles(const std::uint8_t* code, std::uint8_t* nibbles) const {
  constexpr std::size_t words = 32;  // of a block
  std::memset(nibbles, 0, nibble_row_bytes());
  for (std::size_t i = 0; i < code_dim(); ++i) {
    const double value = (static_cast<double>(code[i]) - static_cast<double>(nibble_offsets[i])) /
                         static_cast<double>(nibble_step);
    const auto nibble = static_cast<unsigned>(std::clamp(std::nearbyint(value), 0.0, max_nibble));
    const std::size_t place = i % nibble_block;
    const std::size_t shift = place / words * 4;
    // Little-endian words of 16 bits.
    nibbles[(i / nibble_block * words + place % words) * 2 + shift / 8] |=
        static_cast<std::uint8_t>(nibble << shift % 8);
  }
}

}  // namespace nearwise
