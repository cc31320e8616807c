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

// To units of the step.
void quantize(double* values, const float* offsets, float step, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    values[i] = (values[i] - static_cast<double>(offsets[i])) / static_cast<double>(step);
}

// Nearest integers, ties to even, within [low, high]. A loop that compilers vectorize: std::nearbyint is a
// call for every element on baseline x86-64.
template <typename Integer>
void round_all(const double* values, std::size_t count, double low, double high, Integer* out) {
  constexpr double shift = 0x1.8p52;  // doubles of this size are integers
  for (std::size_t i = 0; i < count; ++i) {
    const double above = values[i] < low ? low : values[i];
    const double clamped = above < high ? above : high;
    out[i] = static_cast<Integer>(static_cast<std::int32_t>(clamped + shift - shift));
  }
}

// One range below the lowest code, and one above the highest.
void round_query(const double* values, std::size_t count, double range, std::int16_t* query) {
  round_all(values, count, -range, 2 * range, query);
}

// For cosine, a zero vector is at distance 1 from every other: as far as orthogonal ones. At the origin it
// would be nearer to a query than these, and many of them would hide the graph behind them. A corner of the
// range of codes is far from all.
void place_zero_vector(const ScalarCodec& codec, double* values) {
  if (codec.metric != Metric::cosine || squared_length(values, codec.dim) != 0) return;
  for (std::size_t i = 0; i < codec.dim; ++i)
    values[i] =
        static_cast<double>(codec.offsets[i]) + (i % 2 == 0 ? max_byte * static_cast<double>(codec.step) : 0);
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
  place_zero_vector(*this, scratch);
  quantize(scratch, offsets.data(), step, code_dim());
  round_all(scratch, code_dim(), 0, max_byte, code);
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
    place_zero_vector(*this, scratch);
  }
  const std::size_t count = code_dim();
  quantize(scratch, offsets.data(), step, count);
  round_query(scratch, count, max_byte, byte_query);
  std::fill(byte_query + count, byte_query + row_bytes(), std::int16_t{0});
  if (!has_nibbles()) return;
  quantize(scratch, nibble_offsets.data(), nibble_step, count);
  scale(scratch, count, nibble_scale);
  round_query(scratch, count, max_nibble * nibble_scale, nibble_query);
  std::fill(nibble_query + count, nibble_query + nibble_query_size(), std::int16_t{0});
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
