// Widening of the storage types: every 16-bit pattern against the definition.
#include "core/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "oracle/knn.h"

namespace nearwise {
namespace {

template <typename T>
void expect_all_patterns_exact(double (*definition)(std::uint16_t)) {
  for (std::uint32_t pattern = 0; pattern <= 0xFFFF; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double expected = definition(bits);
    const float given = to_float(T{bits});
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(given)) << pattern;
    } else {
      ASSERT_EQ(static_cast<double>(given), expected) << pattern;
      ASSERT_EQ(std::signbit(given), std::signbit(expected)) << pattern;  // -0 stays -0
    }
  }
}

TEST(Convert, EveryFloat16) { expect_all_patterns_exact<Float16>(oracle::f16_to_double); }
TEST(Convert, EveryBFloat16) { expect_all_patterns_exact<BFloat16>(oracle::bf16_to_double); }

TEST(Convert, EveryByte) {
  for (int value = 0; value <= 255; ++value)
    EXPECT_EQ(to_float(static_cast<std::uint8_t>(value)), static_cast<float>(value));
  for (int value = -128; value <= 127; ++value)
    EXPECT_EQ(to_float(static_cast<std::int8_t>(value)), static_cast<float>(value));
}

TEST(Convert, AFloatKeepsItsBits) {
  for (const std::uint32_t bits : {0U, 0x80000000U, 1U, 0x807FFFFFU, 0x3F800000U, 0x7F7FFFFFU, 0xFF800000U})
    EXPECT_EQ(std::bit_cast<std::uint32_t>(to_float(std::bit_cast<float>(bits))), bits);
}

TEST(Convert, TheVisitorGetsTheTypeThatWasNamed) {
  for (const ElementType type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::u8, ElementType::i8})
    EXPECT_EQ(visit_element_type(type, [](auto tag) { return ElementTypeOf<decltype(tag)>::value; }), type);
}

TEST(Convert, RowsMayLieAtAnyAddress) {
  constexpr std::size_t dim = 5;
  for (const ElementType type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::u8, ElementType::i8}) {
    for (std::size_t start = 0; start < 4; ++start) {
      const std::size_t stride = dim * element_size(type) + 3;
      std::vector<std::byte> bytes(start + 2 * stride);
      // Bytes below 0x60 make finite numbers in every type.
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 % 0x60);
      const RowsView rows(bytes.data() + start, type, 2, dim, stride);
      for (std::size_t row = 0; row < 2; ++row) {
        std::array<double, dim> values{};
        row_to_double(rows, row, values.data());
        for (std::size_t i = 0; i < dim; ++i) EXPECT_EQ(values[i], oracle::element(rows.row(row), type, i));
      }
    }
  }
}

}  // namespace
}  // namespace nearwise
