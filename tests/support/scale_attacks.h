// Attacks (see attacks.h) on searches that round each vector to integers from -127 to 127 times a scale of
// its own, its largest element over 127: numbers at half steps, scales that one element dictates, and scales
// at the ends of f32.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "support/attacks.h"

namespace nearwise::support::attacks {

// Every element but one at half a step. Ties go to the even integer: rows alternate between numbers that all
// round up and numbers that all round down.
inline Numbers half_steps(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t row, std::size_t i) {
    if (i == row % shape.dim) return 127.0 * draw.sign();
    const double odd = row % 2 == 0 ? 1 : 0;
    return draw.sign() * (2.0 * draw.below(60) + odd + 0.5);
  });
}

// Rows that round to one vector, though they differ by nearly a step in every element; the errors of later
// rows go more and more one way.
inline Numbers equal_when_rounded(const Shape& shape) {
  Draw draw(shape.seed);
  std::vector<double> whole(shape.dim);
  for (double& value : whole) value = draw.sign() * draw.below(100);
  const auto largest = [&](std::size_t i) { return i == 0; };
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    const double share = static_cast<double>(row) / static_cast<double>(shape.rows);
    return largest(i) ? 127.0 : whole[i] + (draw.uniform() < share ? 0.49 : -0.49);
  });
  fill(numbers.queries,
       [&](std::size_t, std::size_t i) { return largest(i) ? 127.0 : whole[i] + 0.3 * draw.normal(); });
  return numbers;
}

// One element of each row dictates its scale; the others, which decide, round to a few steps or to zero.
template <int Exponent>
Numbers outlier_element(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t row, std::size_t i) {
    const std::size_t place = row % 3 == 0 ? 0 : row * 5 % shape.dim;
    return i == place ? std::ldexp(row % 2 == 0 ? 1.0 : -1.0, Exponent) : draw.normal();
  });
}

// Neighbouring rows with scales from the smallest that is encoded, and below, to the largest, and beyond.
inline Numbers every_scale(const Shape& shape) {
  constexpr std::array<double, 12> scales = {1e-44, 1e-38, 0.9e-30, 1.1e-30, 1e-20,  1e-10,
                                             1,     1e4,   1e10,    4e18,    1.1e19, 1e30};
  Draw draw(shape.seed);
  return fill_both(
      shape, [&](std::size_t row, std::size_t) { return draw.normal() * scales[row * 7 % scales.size()]; });
}

// All scales within the range of scores, so that none is evaluated for its length: nearly every row is
// rounded to zero compared with the longest.
template <int Lowest, int Highest>
Numbers scales_between(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t row, std::size_t) {
    const int steps = Highest - Lowest + 1;
    return draw.normal() *
           std::ldexp(1.0, Lowest + static_cast<int>(row * 13 % static_cast<std::size_t>(steps)));
  });
}

// Rounding errors that all point towards the query, or all away from it: they decide which rows are near.
inline Numbers errors_decide(const Shape& shape) {
  Draw draw(shape.seed);
  const std::vector<double> direction = normal_vector(draw, shape.dim);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    if (i == 0) return 127.0;
    const double towards = direction[i] > 0 ? 0.5 : -0.5;
    return std::round(20.0 * direction[i]) + towards * (row % 2 == 0 ? 0.98 : -0.98) + 1e-3 * draw.normal();
  });
  fill(numbers.queries, [&](std::size_t, std::size_t i) {
    return i == 0 ? 127.0 : 20.0 * direction[i] + 0.2 * draw.normal();
  });
  return numbers;
}

// A large offset that the centre cannot take away, since rows lie around it on both sides.
inline Numbers opposite_offsets(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t row, std::size_t i) {
    return (row % 2 == 0 ? 1e3 : -1e3) * (i % 2 == 0 ? 1.0 : -1.0) + draw.normal();
  });
}

}  // namespace nearwise::support::attacks
