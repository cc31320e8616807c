// Rows for tests of selection, and the comparison with the oracle at every instruction set.
//
// A row is a pure function of its kind, length and seed: those three in a failure message repeat it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "core/math/random.h"
#include "nearwise/select_k.h"
#include "oracle/select_k.h"
#include "support/knn_cases.h"

namespace nearwise::support {

enum class RowKind : std::uint8_t {
  uniform,
  normal,
  exponential,  // long tail upwards
  few_values,   // five of them: ties at every threshold
  constant,
  zeros,       // of either sign
  ascending,   // the best come first: a sample of the beginning would be far too strict
  descending,  // the best come last: every value passes the thresholds before it
  steps,       // ascending in steps of 100 equal values
  late_ties,   // large values, then many equal small ones
  denormals,   // of either sign, some zeros
  infinities,  // half of them, of either sign
  some_nan,    // one in ten
  mostly_nan,  // nine in ten
  all_nan,
  anything,  // NaN, infinities, zeros of either sign, denormals, numbers
};

inline constexpr std::array every_row_kind = {
    RowKind::uniform,  RowKind::normal,     RowKind::exponential, RowKind::few_values,
    RowKind::constant, RowKind::zeros,      RowKind::ascending,   RowKind::descending,
    RowKind::steps,    RowKind::late_ties,  RowKind::denormals,   RowKind::infinities,
    RowKind::some_nan, RowKind::mostly_nan, RowKind::all_nan,     RowKind::anything};

inline std::string_view name(RowKind kind) {
  constexpr std::array<std::string_view, every_row_kind.size()> names = {
      "uniform",   "normal",     "exponential", "few_values", "constant",  "zeros",
      "ascending", "descending", "steps",       "late_ties",  "denormals", "infinities",
      "some_nan",  "mostly_nan", "all_nan",     "anything"};
  return names[static_cast<std::size_t>(kind)];
}

// NaNs differ in their bits, so that returning another one is noticed.
inline float numbered_nan(std::size_t number) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(0x7FC00000U + number % 0x10000U) |
                              static_cast<std::uint32_t>(number % 2 << 31));
}

inline float value_at(RowKind kind, const Random& random, std::size_t row, std::size_t column,
                      std::size_t columns) {
  const std::uint64_t index = row * columns + column;
  const float infinity = std::numeric_limits<float>::infinity();
  const double uniform = random.uniform(index);
  const auto normal = static_cast<float>(random.normal(index));
  const std::size_t dice = random.below(index + (std::uint64_t{1} << 40), 10);
  const float sign = dice % 2 == 0 ? 1.0F : -1.0F;
  switch (kind) {
    case RowKind::uniform: return static_cast<float>(uniform);
    case RowKind::normal: return normal;
    case RowKind::exponential: return static_cast<float>(-std::log1p(-uniform));
    case RowKind::few_values: return static_cast<float>(dice % 5) - 2;
    case RowKind::constant: return -3.5F;
    case RowKind::zeros: return 0.0F * sign;
    case RowKind::ascending: return static_cast<float>(column) - static_cast<float>(columns / 3);
    case RowKind::descending: return static_cast<float>(columns / 3) - static_cast<float>(column);
    case RowKind::steps: return static_cast<float>(column / 100);
    case RowKind::late_ties: return column < columns / 2 ? 5 + static_cast<float>(uniform) : 1.0F;
    case RowKind::denormals:
      return dice < 3 ? 0.0F * sign : sign * 1e-45F * static_cast<float>(1 + random.below(index, 50));
    case RowKind::infinities: return dice < 5 ? sign * infinity : normal;
    case RowKind::some_nan: return dice == 0 ? numbered_nan(index) : normal;
    case RowKind::mostly_nan: return dice != 0 ? numbered_nan(index) : normal;
    case RowKind::all_nan: return numbered_nan(index);
    case RowKind::anything: break;
  }
  switch (dice) {
    case 0: return numbered_nan(index);
    case 1:
    case 2: return sign * infinity;
    case 3:
    case 4: return uniform < 0.5 ? 0.0F : -0.0F;
    case 5:
    case 6: return sign * 1e-44F * static_cast<float>(uniform);
    default: return normal;
  }
}

// `gap` elements of rubbish between rows: the best there could be, should one be read.
struct ValueRows {
  ValueRows(RowKind kind, std::size_t rows, std::size_t columns, std::uint64_t seed, std::size_t gap = 0)
      : rows_(rows), columns_(columns), stride_(columns + gap), values_(rows * stride_ + 1) {
    const Random random = random_for(seed, Purpose::elements);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < stride_; ++i)
        values_[1 + row * stride_ + i] = i < columns  ? value_at(kind, random, row, i, columns)
                                         : i % 2 == 0 ? -std::numeric_limits<float>::infinity()
                                                      : std::numeric_limits<float>::infinity();
  }
  // Begins one float after an aligned address.
  MatrixView<const float> view() const { return {values_.data() + 1, rows_, columns_, stride_}; }
  operator MatrixView<const float>() const { return view(); }

 private:
  std::size_t rows_;
  std::size_t columns_;
  std::size_t stride_;
  std::vector<float> values_;
};

// Ids and the bits of values, where two answers first differ.
inline ::testing::AssertionResult same(const oracle::SelectionAnswer& expected, const Selection& given) {
  if (given.ids.rows() != expected.rows || given.ids.cols() != expected.k ||
      given.values.rows() != expected.rows || given.values.cols() != expected.k)
    return ::testing::AssertionFailure() << fmt::format(
               "shape: expected {} x {}, got ids {} x {}, values {} x {}", expected.rows, expected.k,
               given.ids.rows(), given.ids.cols(), given.values.rows(), given.values.cols());
  for (std::size_t row = 0; row < expected.rows; ++row)
    for (std::size_t rank = 0; rank < expected.k; ++rank) {
      const std::size_t index = row * expected.k + rank;
      const auto expected_bits = std::bit_cast<std::uint32_t>(expected.values[index]);
      const auto bits = std::bit_cast<std::uint32_t>(given.values(row, rank));
      if (given.ids(row, rank) != expected.ids[index] || bits != expected_bits)
        return ::testing::AssertionFailure() << fmt::format(
                   "row {} rank {}: expected id {} value {} ({:#010x}), got id {} value {} ({:#010x})", row,
                   rank, expected.ids[index], expected.values[index], expected_bits, given.ids(row, rank),
                   given.values(row, rank), bits);
    }
  return ::testing::AssertionSuccess();
}

inline constexpr std::array both_orders = {Order::smallest, Order::largest};

inline Id column_number(std::size_t, std::size_t column) { return static_cast<Id>(column); }

}  // namespace nearwise::support
