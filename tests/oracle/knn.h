// The definition of exact search, executed: slow, obvious, in double precision, a full sort.
//
// Nothing here comes from src/: conversions, sums and order are written from their definitions, so that a
// mistake of the library cannot be repeated by what checks it. Compile with -ffp-contract=off
// (cmake/warnings.cmake does) and run in the default floating-point environment.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise::oracle {

// An IEEE-style number of 16 bits: sign, biased exponent, fraction. The value is exact in f64.
inline double decode_16_bits(std::uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int all_ones = (1 << exponent_bits) - 1;
  const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> fraction_bits) & all_ones;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  if (exponent == all_ones)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  // Exponent 0: no leading one, and the exponent of the smallest normal number.
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

inline double f16_to_double(std::uint16_t bits) { return decode_16_bits(bits, 5); }
inline double bf16_to_double(std::uint16_t bits) { return decode_16_bits(bits, 8); }

template <typename T>
T read_unaligned(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Element `index` of a row that may lie at any address.
inline double element(const std::byte* row, ElementType type, std::size_t index) {
  switch (type) {
    case ElementType::f32: return read_unaligned<float>(row + 4 * index);
    case ElementType::f16: return f16_to_double(read_unaligned<std::uint16_t>(row + 2 * index));
    case ElementType::bf16: return bf16_to_double(read_unaligned<std::uint16_t>(row + 2 * index));
    case ElementType::u8: return read_unaligned<std::uint8_t>(row + index);
    case ElementType::i8: return read_unaligned<std::int8_t>(row + index);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// All rows, one after the other, exactly.
inline std::vector<double> to_doubles(RowsView rows) {
  std::vector<double> values(rows.rows() * rows.dim());
  for (std::size_t row = 0; row < rows.rows(); ++row)
    for (std::size_t i = 0; i < rows.dim(); ++i)
      values[row * rows.dim() + i] = element(rows.row(row), rows.type(), i);
  return values;
}

// The fixed order: element i goes to lane i mod 8, lanes are combined by a fixed tree.
template <typename Term>
double fixed_order_sum(std::size_t dim, Term term) {
  std::array<double, 8> lane{};
  for (std::size_t i = 0; i < dim; ++i) lane[i % 8] += term(i);
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// The value that the library must report for one pair, to the bit.
inline float reported(Metric metric, std::span<const double> query, std::span<const double> base) {
  const std::size_t dim = query.size();
  const auto squared_difference = [&](std::size_t i) { return (query[i] - base[i]) * (query[i] - base[i]); };
  const auto product = [&](std::size_t i) { return query[i] * base[i]; };
  switch (metric) {
    case Metric::sqeuclidean: return static_cast<float>(fixed_order_sum(dim, squared_difference));
    case Metric::euclidean: return static_cast<float>(std::sqrt(fixed_order_sum(dim, squared_difference)));
    case Metric::inner_product: return static_cast<float>(fixed_order_sum(dim, product));
    case Metric::cosine: break;
  }
  const double dot = fixed_order_sum(dim, product);
  const double query_squared = fixed_order_sum(dim, [&](std::size_t i) { return query[i] * query[i]; });
  const double base_squared = fixed_order_sum(dim, [&](std::size_t i) { return base[i] * base[i]; });
  if (query_squared == 0.0 || base_squared == 0.0) return 1.0F;
  const double distance = 1.0 - dot / std::sqrt(query_squared * base_squared);
  return static_cast<float>(std::clamp(distance, 0.0, 2.0));
}

struct Candidate {
  float value = 0;
  Id id = 0;
};

// Best first; -0 and +0 are equal values, so the id decides between them.
inline bool better(Metric metric, const Candidate& left, const Candidate& right) {
  if (left.value != right.value)
    return metric == Metric::inner_product ? left.value > right.value : left.value < right.value;
  return left.id < right.id;
}

inline float worst_value(Metric metric) {
  const float infinity = std::numeric_limits<float>::infinity();
  return metric == Metric::inner_product ? -infinity : infinity;
}

// [queries, k] row-major; rows end in padding where the base has fewer than k rows.
struct Answer {
  std::size_t queries = 0;
  std::size_t k = 0;
  std::vector<Id> ids;
  std::vector<float> distances;
};

inline Answer knn(RowsView queries, RowsView base, std::size_t k, Metric metric) {
  const std::size_t dim = queries.dim();
  const std::vector<double> query_values = to_doubles(queries);
  const std::vector<double> base_values = to_doubles(base);
  Answer answer{queries.rows(), k, {}, {}};
  std::vector<Candidate> candidates(base.rows());
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    const std::span<const double> query_row(query_values.data() + query * dim, dim);
    for (std::size_t row = 0; row < base.rows(); ++row)
      candidates[row] = {reported(metric, query_row, {base_values.data() + row * dim, dim}),
                         static_cast<Id>(row)};
    std::sort(candidates.begin(), candidates.end(),
              [&](const Candidate& left, const Candidate& right) { return better(metric, left, right); });
    for (std::size_t rank = 0; rank < k; ++rank) {
      const bool real = rank < candidates.size();
      answer.ids.push_back(real ? candidates[rank].id : no_id);
      answer.distances.push_back(real ? candidates[rank].value : worst_value(metric));
    }
  }
  return answer;
}

}  // namespace nearwise::oracle
