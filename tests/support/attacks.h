// Data made to fool a search that decides by bf16 or int8 arithmetic, or by |x|^2 + |y|^2 - 2xy in f32, who
// deserves an exact look. Each attack takes aim at one assumption such a search is tempted to make.
// byte_attacks.h has those of integers, problems.h the ordinary hostile data. A pure function of its Shape.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/math/random.h"
#include "support/rows.h"

namespace nearwise::support {

struct Shape {
  std::size_t rows = 0;
  std::size_t queries = 0;
  std::size_t dim = 0;
  std::uint64_t seed = 0;
};

struct Numbers {
  explicit Numbers(const Shape& shape) : base(shape.rows, shape.dim), queries(shape.queries, shape.dim) {}
  Values base;
  Values queries;
};

// Random numbers one after the other.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, 77) {}
  double normal() { return random_.normal(next_++); }
  double uniform() { return random_.uniform(next_++); }
  double sign() { return uniform() < 0.5 ? -1.0 : 1.0; }
  double below(std::uint64_t bound) { return static_cast<double>(random_.below(next_++, bound)); }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

// value(row, i) for every element.
template <typename Value>
void fill(Values& values, Value value) {
  for (std::size_t row = 0; row < values.rows(); ++row)
    for (std::size_t i = 0; i < values.dim(); ++i) values(row, i) = value(row, i);
}
template <typename Value>
Numbers fill_both(const Shape& shape, Value value) {
  Numbers numbers(shape);
  fill(numbers.base, value);
  fill(numbers.queries, value);
  return numbers;
}

inline std::vector<double> normal_vector(Draw& draw, std::size_t dim) {
  std::vector<double> vector(dim);
  for (double& value : vector) value = draw.normal();
  return vector;
}

// The nearest bf16 number, and the distance between bf16 numbers there (2^-8 of it: coarse; 2^-16: what is
// left to the sum of two of them).
inline double to_bf16(double value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) & 0xFFFF0000U;
  return static_cast<double>(std::bit_cast<float>(rounded));
}
inline double half_step(double value, int bits) {
  return std::ldexp(1.0, (value == 0 ? 0 : std::ilogb(value)) - bits);
}

namespace attacks {

// --- the rounding of bf16

// Everything exactly between two bf16 numbers. Rows alternate between numbers that all round up and numbers
// that all round down, so that errors are as large as can be, of one sign, and opposite in neighbouring rows.
inline Numbers halfway(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t row, std::size_t) {
    const double odd = row % 2 == 0 ? 1 : 0;  // the last bit kept: ties go to the even one
    return 1.0 + (2.0 * draw.below(64) + odd) / 128.0 + 1.0 / 256.0;
  });
}

// Either of the two numbers halfway below and above a bf16 number that is even: all rows round to one vector,
// though they differ by a whole step, and the errors of later rows go more and more one way.
inline Numbers halfway_to_one(const Shape& shape) {
  Draw draw(shape.seed);
  std::vector<double> even(shape.dim);
  for (double& value : even) value = 1.0 + (2.0 + 2.0 * draw.below(62)) / 128.0;
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    const double share = static_cast<double>(row) / static_cast<double>(shape.rows);
    return even[i] + (draw.uniform() < share ? 1.0 : -1.0) / 256.0;
  });
  fill(numbers.queries, [&](std::size_t, std::size_t i) { return even[i] + draw.normal() / 256.0; });
  return numbers;
}

// Halfway, with signs and exponents that differ from element to element.
inline Numbers halfway_signed(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) {
    return std::ldexp(draw.sign() * (1.0 + draw.below(128) / 128.0 + 1.0 / 256.0),
                      static_cast<int>(draw.below(6)));
  });
}

// All rows and queries round to the same bf16 vector (Bits = 8), or sum of two (16).
template <int Bits>
Numbers colliding(const Shape& shape) {
  Draw draw(shape.seed);
  std::vector<double> centre = normal_vector(draw, shape.dim);
  for (double& value : centre) value = to_bf16(value);
  return fill_both(shape, [&](std::size_t, std::size_t i) {
    return centre[i] + 0.9 * (draw.uniform() - 0.5) * half_step(centre[i], Bits);
  });
}

// What is lost by rounding points along the query, the more so the later the row: the best rows look like all
// others.
template <int Bits>
Numbers correlated_residuals(const Shape& shape) {
  Draw draw(shape.seed);
  const std::vector<double> query = normal_vector(draw, shape.dim);
  std::vector<double> centre = normal_vector(draw, shape.dim);
  for (double& value : centre) value = to_bf16(value);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    const double share = static_cast<double>(row) / static_cast<double>(shape.rows);
    const double along = draw.uniform() < share ? 1.0 : -1.0;
    return centre[i] + 0.49 * along * std::copysign(half_step(centre[i], Bits), query[i]);
  });
  fill(numbers.queries, [&](std::size_t, std::size_t i) { return query[i] + 0x1p-10 * draw.normal(); });
  return numbers;
}

// Three attacks at which a bound by norms (Cauchy-Schwarz) is tight: what rounding loses is parallel to what
// it is multiplied with. Every element has one exponent, so that half a step is the same for all.
inline constexpr double half_step_at_1 = 0x1p-8;

struct Aligned {
  std::vector<double> centre;     // bf16 numbers in [1, 2), equal in pairs
  std::vector<double> direction;  // 1 and -1 in turn: orthogonal to the centre
};
inline Aligned aligned(Draw& draw, std::size_t dim) {
  Aligned made{std::vector<double>(dim), std::vector<double>(dim)};
  for (std::size_t i = 0; i < dim; ++i) {
    made.centre[i] = i % 2 == 1 ? made.centre[i - 1] : 1.0 + (2.0 + draw.below(124)) / 128.0;
    made.direction[i] = i % 2 == 1 ? -1.0 : 1.0;
  }
  return made;
}

// Lost to rounding: a step towards the query, longer from row to row. Every other row is a mirror image, so
// that the mean of the rows is zero and shifting by it changes nothing.
inline Numbers residuals_towards_the_query(const Shape& shape) {
  Draw draw(shape.seed);
  const Aligned made = aligned(draw, shape.dim);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    const double length = 0.85 + 0.1 * static_cast<double>(row) / static_cast<double>(shape.rows);
    return (row % 2 == 0 ? 1.0 : -1.0) * (made.centre[i] + length * half_step_at_1 * made.direction[i]);
  });
  fill(numbers.queries, [&](std::size_t query, std::size_t i) {
    return made.centre[i] + (1.0 + static_cast<double>(query)) / 16.0 * made.direction[i];
  });
  return numbers;
}

// Lost to rounding: all of the product with the query.
inline Numbers residuals_along_the_query(const Shape& shape) {
  Draw draw(shape.seed);
  const Aligned made = aligned(draw, shape.dim);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    const double length = 0.85 + 0.1 * static_cast<double>(row) / static_cast<double>(shape.rows);
    return made.centre[i] + length * half_step_at_1 * made.direction[i];
  });
  fill(numbers.queries, [&](std::size_t query, std::size_t i) {
    return std::ldexp(made.direction[i], static_cast<int>(query % 8));
  });
  return numbers;
}

// The same in the query: rows along its residual win, and have no product with what is left of it. The first
// half are rows that look better and are not.
inline Numbers residual_in_the_query(const Shape& shape) {
  Draw draw(shape.seed);
  const Aligned made = aligned(draw, shape.dim);
  double square = 0;
  for (const double value : made.centre) square += value * value;
  const double decoy = 0.9 * half_step_at_1 * static_cast<double>(shape.dim) / square;
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    if (row < shape.rows / 2) return decoy * (1.0 - static_cast<double>(row % 50) / 1000.0) * made.centre[i];
    return (1.0 + static_cast<double>(row % 8) / 128.0) * made.direction[i];  // bf16 numbers
  });
  fill(numbers.queries, [&](std::size_t query, std::size_t i) {
    return made.centre[i] +
           (0.95 - static_cast<double>(query % 8) / 1000.0) * half_step_at_1 * made.direction[i];
  });
  return numbers;
}

// Clusters of some 250 rows with a spread of 2^-Exponent of their norm.
template <int Exponent>
Numbers tight_clusters(const Shape& shape) {
  Draw draw(shape.seed);
  const std::size_t clusters = shape.rows / 250 + 1;
  std::vector<double> centres = normal_vector(draw, clusters * shape.dim);
  return fill_both(shape, [&](std::size_t row, std::size_t i) {
    return centres[row % clusters * shape.dim + i] + std::ldexp(draw.normal(), -Exponent);
  });
}

// One direction with a little noise: every cosine is next to 0.
inline Numbers narrow_cone(const Shape& shape) {
  Draw draw(shape.seed);
  const std::vector<double> axis = normal_vector(draw, shape.dim);
  return fill_both(shape, [&](std::size_t row, std::size_t i) {
    return (axis[i] + 1e-3 * draw.normal()) * (1.0 + static_cast<double>(row % 7));
  });
}

// --- scales

// One long row: a scale or an error bound taken over all rows is useless for the others.
template <int Exponent>
Numbers outlier_row(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers = fill_both(shape, [&](std::size_t, std::size_t) { return draw.normal(); });
  for (double& value : numbers.base.row(shape.rows / 3)) value = std::ldexp(value, Exponent);
  return numbers;
}

// One long column, the same everywhere but for its last bits: a common scale leaves nothing of the others.
inline Numbers outlier_column(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t i) {
    return i == shape.dim / 2 ? 1e4 + 1e-3 * draw.normal() : draw.normal();
  });
}

inline Numbers outlier_queries(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers = fill_both(shape, [&](std::size_t, std::size_t) { return draw.normal(); });
  for (std::size_t query = 0; query < shape.queries; query += 3)
    for (double& value : numbers.queries.row(query)) value *= 1e5;
  return numbers;
}

// Blocks of 64 rows near the origin and far from it in turn; queries near both. A bound of the wrong block is
// too small.
inline Numbers mixed_blocks(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  fill(numbers.base,
       [&](std::size_t row, std::size_t) { return (row / 64 % 2 == 0 ? 0.0 : 3e3) + draw.normal(); });
  fill(numbers.queries,
       [&](std::size_t query, std::size_t) { return (query % 2 == 0 ? 0.0 : 3e3) + draw.normal(); });
  return numbers;
}

// The same for integers: steps of 1 on a linear scale that an element 127 fixes.
inline Numbers halfway_to_one_integer(const Shape& shape) {
  Draw draw(shape.seed);
  std::vector<double> even(shape.dim);
  for (double& value : even) value = 2.0 * draw.below(120) - 120.0;
  return fill_both(shape, [&](std::size_t, std::size_t i) {
    return i == 0 ? 127.0 : even[i] + (draw.uniform() < 0.5 ? 0.5 : -0.5) + 0x1p-10 * draw.normal();
  });
}

inline Numbers ladder_of_rows(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t row, std::size_t) {
    return std::ldexp(draw.normal(), static_cast<int>(row % 121) - 60);
  });
}

inline Numbers ladder_of_columns(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t i) {
    return std::ldexp(draw.sign() * (1.0 + draw.uniform()), -static_cast<int>(i % 50));
  });
}

// --- far from the origin

inline Numbers offset_with_ties(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) { return 65536.0 + draw.below(4); });
}

// Every column elsewhere, over five decades.
inline Numbers offset_columns(const Shape& shape) {
  Draw draw(shape.seed);
  std::vector<double> offset(shape.dim);
  for (double& value : offset) value = draw.sign() * std::pow(10.0, 5.0 * draw.uniform());
  return fill_both(shape, [&](std::size_t, std::size_t i) { return offset[i] + draw.normal(); });
}

// Two halves of the data on either side of the origin: their mean is no help.
inline Numbers two_offsets(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape,
                   [&](std::size_t row, std::size_t) { return (row % 2 == 0 ? 1e4 : -1e4) + draw.normal(); });
}

// Seen from afar all rows are at one distance.
inline Numbers far_queries(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers = fill_both(shape, [&](std::size_t, std::size_t) { return draw.normal(); });
  for (std::size_t query = 0; query < shape.queries; ++query)
    for (double& value : numbers.queries.row(query)) value *= 1e4;
  return numbers;
}

// --- denormals, which tiles take for zero

inline Numbers bf16_denormals(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) { return 1e-39 * draw.normal(); });
}

inline Numbers smallest_steps(const Shape& shape) {
  Draw draw(shape.seed);
  return fill_both(shape, [&](std::size_t, std::size_t) { return draw.sign() * 0x1p-149 * draw.below(8); });
}

// Denormal rows and huge queries: ordinary products, all lost if denormals are taken for zero.
inline Numbers denormal_against_huge(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t, std::size_t) { return 1e-40 * draw.normal(); });
  fill(numbers.queries, [&](std::size_t, std::size_t) { return 1e30 * draw.normal(); });
  return numbers;
}

// ... or half of each.
inline Numbers half_denormal(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  fill(numbers.base,
       [&](std::size_t, std::size_t i) { return (i % 2 == 0 ? 1e-40 : 1e-12) * draw.normal(); });
  fill(numbers.queries,
       [&](std::size_t, std::size_t i) { return (i % 2 == 0 ? 1e30 : 1.0) * draw.normal(); });
  return numbers;
}

// bf16 numbers whose products are each denormal in f32 and together are not: tiles drop them one by one. The
// first half are rows with half of that product in one piece.
inline Numbers products_that_flush(const Shape& shape) {
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    const double one_piece = i == 0 ? 0.5 * static_cast<double>(shape.dim) : 0.0;
    return 0x1p-64 * (row < shape.rows / 2 ? one_piece : 1.0 + static_cast<double>(row % 8) / 128.0);
  });
  fill(numbers.queries, [&](std::size_t query, std::size_t) {
    return 0x1p-64 * (1.0 + static_cast<double>(query % 4) / 4.0);
  });
  return numbers;
}

// --- products that cancel, distances that hardly differ

// Pairs of elements whose products cancel but for a difference that bf16 does not see.
inline Numbers cancelling_pairs(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  for (std::size_t row = 0; row < shape.rows; ++row)
    for (std::size_t i = 0; i < shape.dim; ++i)
      numbers.base(row, i) =
          i % 2 == 0 ? draw.normal() * 100 : -numbers.base(row, i - 1) + 0x1p-12 * draw.normal();
  for (std::size_t query = 0; query < shape.queries; ++query)
    for (std::size_t i = 0; i < shape.dim; ++i)
      numbers.queries(query, i) = i % 2 == 0 ? draw.normal() * 100 : numbers.queries(query, i - 1);
  return numbers;
}

// One vector, in every row one element moved by a few units of the last place of f32.
inline Numbers last_bits(const Shape& shape) {
  Draw draw(shape.seed);
  std::vector<float> vector(shape.dim);
  for (float& value : vector) value = static_cast<float>(draw.normal());
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(vector[i]);
    const auto moved = static_cast<std::uint32_t>(row % shape.dim == i ? 1 + row / shape.dim % 5 : 0);
    return static_cast<double>(std::bit_cast<float>(bits + moved));
  });
  fill(numbers.queries,
       [&](std::size_t, std::size_t i) { return static_cast<double>(vector[i]) + 0.1 * draw.normal(); });
  return numbers;
}

// Rows of exactly one norm: the elements of one vector, rotated.
inline Numbers rotations(const Shape& shape) {
  Draw draw(shape.seed);
  const std::vector<double> vector = normal_vector(draw, shape.dim);
  return fill_both(shape, [&](std::size_t row, std::size_t i) {
    return vector[(i + row) % shape.dim] * (row / shape.dim % 2 == 0 ? 1.0 : -1.0);
  });
}

// ... or its signs changed.
inline Numbers signs(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t, std::size_t) { return draw.sign() * 0.7; });
  fill(numbers.queries,
       [&](std::size_t, std::size_t) { return draw.sign() * 0.7 + 0x1p-14 * draw.normal(); });
  return numbers;
}

// Unit vectors and queries next to the origin: distances differ in the last bits of f32, or tie.
inline Numbers unit_rows_seen_from_the_origin(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t, std::size_t) { return draw.normal(); });
  for (std::size_t row = 0; row < shape.rows; ++row) {
    double squares = 0;
    for (const double value : numbers.base.row(row)) squares += value * value;
    for (double& value : numbers.base.row(row)) value /= std::sqrt(squares);
  }
  fill(numbers.queries,
       [&](std::size_t query, std::size_t) { return query % 2 == 0 ? 0.0 : 1e-7 * draw.normal(); });
  return numbers;
}

// --- lists of candidates

// Blocks of 400 equal rows, which no list of a few hundred candidates holds.
inline Numbers duplicate_blocks(const Shape& shape) {
  Draw draw(shape.seed);
  const std::vector<double> originals = normal_vector(draw, (shape.rows / 400 + 1) * shape.dim);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) { return originals[row / 400 * shape.dim + i]; });
  fill(numbers.queries, [&](std::size_t query, std::size_t i) {
    return originals[query % (shape.rows / 400 + 1) * shape.dim + i] + 1e-2 * draw.normal();
  });
  return numbers;
}

// Every row better than all before it.
inline Numbers worst_to_best(const Shape& shape) {
  Draw draw(shape.seed);
  const std::vector<double> target = normal_vector(draw, shape.dim);
  const std::vector<double> direction = normal_vector(draw, shape.dim);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t i) {
    return target[i] + static_cast<double>(shape.rows - row) / static_cast<double>(shape.rows) * direction[i];
  });
  fill(numbers.queries, [&](std::size_t, std::size_t i) { return target[i] + 1e-4 * draw.normal(); });
  return numbers;
}

// One row that wins every inner product by orders of magnitude.
inline Numbers dominating_row(const Shape& shape) {
  Draw draw(shape.seed);
  const std::vector<double> axis = normal_vector(draw, shape.dim);
  Numbers numbers = fill_both(shape, [&](std::size_t, std::size_t) { return draw.normal(); });
  fill(numbers.queries, [&](std::size_t, std::size_t i) { return axis[i] + 0.3 * draw.normal(); });
  for (std::size_t i = 0; i < shape.dim; ++i) numbers.base(shape.rows / 2, i) = 1e4 * axis[i];
  return numbers;
}

// --- the edges of tiles

// Rows differ in their last element only: lost if a tail is cut, wrong if it is filled with anything but
// zeros.
inline Numbers last_element_only(const Shape& shape) {
  Draw draw(shape.seed);
  const std::vector<double> vector = normal_vector(draw, shape.dim);
  return fill_both(shape, [&](std::size_t, std::size_t i) {
    return i + 1 == shape.dim ? vector[i] + 0.1 * draw.normal() : vector[i];
  });
}

// The near rows are the first and last of every 16, and the very last.
inline Numbers winners_at_edges(const Shape& shape) {
  Draw draw(shape.seed);
  Numbers numbers(shape);
  fill(numbers.base, [&](std::size_t row, std::size_t) {
    const bool edge = row % 16 == 0 || row % 16 == 15 || row + 1 == shape.rows;
    return (edge ? 0.0 : 10.0) + draw.normal();
  });
  fill(numbers.queries, [&](std::size_t, std::size_t) { return 0.1 * draw.normal(); });
  return numbers;
}

}  // namespace attacks
}  // namespace nearwise::support
