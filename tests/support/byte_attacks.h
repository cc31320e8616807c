// Attacks (see attacks.h) on searches that multiply bytes: sums that overflow, extremes, ties, numbers
// between bytes.
#pragma once

#include <cstddef>

#include "support/attacks.h"

namespace nearwise::support::attacks {

// The number that Rows::set turns into this u8 or i8.
inline double byte(double value) { return value / 30.0; }

inline Numbers integers_as_floats(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) { return draw.below(256); });
}
inline Numbers half_integers(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) { return draw.below(511) / 2.0; });
}
inline Numbers u8_extremes(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) { return byte(draw.uniform() < 0.5 ? 0 : 255); });
}
inline Numbers i8_extremes(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) { return byte(draw.uniform() < 0.5 ? -128 : 127); });
}
// Sums of pairs of products exceed 16 bits.
inline Numbers u8_against_i8_extremes(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t, std::size_t) { return byte(draw.uniform() < 0.1 ? 0 : 255); });
  fill(numbers.queries, [&](std::size_t query, std::size_t) {
    return byte((query % 2 == 0) == (draw.uniform() < 0.9) ? -128 : 127);
  });
  return numbers;
}
// The largest sums there are, which differ by one step in one element: many ties, and overflow where sums are
// narrow.
template <int Largest>
Numbers all_largest(const Shape& shape) {
  return fill_both(shape, [&](std::size_t row, std::size_t i) {
    const double step = Largest > 0 ? -1.0 : 1.0;
    return byte(Largest + (row * 7 % shape.dim == i ? step * static_cast<double>(row % 3) : 0.0));
  });
}
// Around the middle of u8, where shifted bytes change sign.
inline Numbers u8_middle(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) { return byte(126.0 + draw.below(4)); });
}
inline Numbers sparse_bytes(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape,
                   [&](std::size_t, std::size_t) { return draw.uniform() < 0.03 ? byte(127) : byte(0); });
}
// Bytes against f32 numbers halfway between bytes.
inline Numbers bytes_against_halves(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t, std::size_t) { return byte(draw.below(128)); });
  fill(numbers.queries, [&](std::size_t, std::size_t) { return draw.below(128) + 0.5; });
  return numbers;
}

}  // namespace nearwise::support::attacks
