// The oracle itself, on cases computed by hand: what checks everything else is checked here.
#include "oracle/knn.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/half.h"
#include "support/problems.h"
#include "support/rows.h"

namespace nearwise {
namespace {

using oracle::Answer;
using oracle::reported;

TEST(OracleConversion, KnownHalfPrecisionValues) {
  EXPECT_EQ(oracle::f16_to_double(0x3C00), 1.0);
  EXPECT_EQ(oracle::f16_to_double(0xC000), -2.0);
  EXPECT_EQ(oracle::f16_to_double(0x3555), 1365.0 / 4096.0);  // nearest to 1/3
  EXPECT_EQ(oracle::f16_to_double(0x7BFF), 65504.0);
  EXPECT_EQ(oracle::f16_to_double(0x0400), std::ldexp(1.0, -14));
  EXPECT_EQ(oracle::f16_to_double(0x03FF), std::ldexp(1023.0, -24));
  EXPECT_EQ(oracle::f16_to_double(0x0001), std::ldexp(1.0, -24));
  EXPECT_TRUE(std::signbit(oracle::f16_to_double(0x8000)));
  EXPECT_EQ(oracle::f16_to_double(0xFC00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(oracle::f16_to_double(0x7C01)));
}

// bf16 is the upper half of an f32, which the hardware converts.
TEST(OracleConversion, Bfloat16IsTheUpperHalfOfFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint32_t word = bits << 16;
    float expected;
    std::memcpy(&expected, &word, sizeof(expected));
    const double given = oracle::bf16_to_double(static_cast<std::uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(given)) << bits;
    } else {
      EXPECT_EQ(given, static_cast<double>(expected)) << bits;
      EXPECT_EQ(std::signbit(given), std::signbit(expected)) << bits;
    }
  }
}

// The generators' rounding: every finite value comes back, halves go to the even neighbour, the rest
// saturates.
TEST(OracleConversion, GeneratorsRoundToNearestEven) {
  for (std::uint32_t word = 0; word < 0x10000; ++word) {
    const auto bits = static_cast<std::uint16_t>(word);
    const double half = oracle::f16_to_double(bits);
    const double brain = oracle::bf16_to_double(bits);
    if (std::isfinite(half)) {
      EXPECT_EQ(support::to_float16(half).bits, bits);
    }
    if (std::isfinite(brain)) {
      EXPECT_EQ(support::to_bfloat16(brain).bits, bits);
    }
  }
  EXPECT_EQ(support::to_float16(1.0 + 0x1p-11).bits, 0x3C00);
  EXPECT_EQ(support::to_float16(1.0 + 0x3p-11).bits, 0x3C02);
  EXPECT_EQ(support::to_float16(2.0 - 0x1p-11).bits, 0x4000);  // carries into the exponent
  EXPECT_EQ(support::to_float16(0x1p-25).bits, 0x0000);
  EXPECT_EQ(support::to_float16(0x3p-25).bits, 0x0002);
  EXPECT_EQ(support::to_float16(-1e9).bits, 0xFBFF);
  EXPECT_EQ(support::to_bfloat16(1.0 + 0x1p-8).bits, 0x3F80);
  EXPECT_EQ(support::to_bfloat16(-3.4e38).bits, 0xFF7F);
}

TEST(OracleConversion, ReadsEveryTypeAtEveryAddress) {
  support::Values values(3, 2);
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t i = 0; i < 2; ++i)
      values(row, i) = static_cast<double>(row) + 0.5 * static_cast<double>(i);
  for (const support::Layout layout :
       {support::Layout::dense, support::Layout::padded, support::Layout::unaligned}) {
    const std::vector<double> expected = {0, 0.5, 1, 1.5, 2, 2.5};
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16})
      EXPECT_EQ(oracle::to_doubles(support::Rows(values, type, layout).view()), expected);
    const std::vector<double> thirtieths = {0, 15, 30, 45, 60, 75};
    for (const ElementType type : {ElementType::u8, ElementType::i8})
      EXPECT_EQ(oracle::to_doubles(support::Rows(values, type, layout).view()), thirtieths);
  }
}

TEST(OracleMetric, SmallVectorsByHand) {
  const std::vector<double> query = {1, 2};
  const std::vector<double> base = {4, -2};
  EXPECT_EQ(reported(Metric::sqeuclidean, query, base), 25.0F);
  EXPECT_EQ(reported(Metric::euclidean, query, base), 5.0F);
  EXPECT_EQ(reported(Metric::inner_product, query, base), 0.0F);
  EXPECT_EQ(reported(Metric::cosine, query, base), 1.0F);
  EXPECT_EQ(reported(Metric::cosine, query, std::vector<double>{-2, -4}), 2.0F);
  EXPECT_EQ(reported(Metric::cosine, std::vector<double>{3, 4}, std::vector<double>{4, 3}), 0.04F);
  EXPECT_EQ(reported(Metric::cosine, std::vector<double>{0, 0}, base), 1.0F);
  EXPECT_EQ(reported(Metric::cosine, query, std::vector<double>{0, 0}), 1.0F);
}

// 1e20 cancels only with the partner that the lanes and the tree give it; any other order yields another sum.
TEST(OracleMetric, TheOrderOfSummationIsTheDocumentedOne) {
  const double big = 0x1p60;
  const std::vector<double> ones(16, 1.0);
  std::vector<double> terms(16, 0.0);
  const auto sum = [&] {
    return oracle::fixed_order_sum(16, [&](std::size_t i) { return terms[i] * ones[i]; });
  };
  // Elements 0 and 8 share a lane: they cancel before the 1 of lane 1 arrives.
  terms[0] = big, terms[8] = -big, terms[1] = 1;
  EXPECT_EQ(sum(), 1.0);
  // In lane 0 the 1 of element 8 is lost in 2^60, and lane 4 cancels too late.
  terms.assign(16, 0.0);
  terms[0] = big, terms[8] = 1, terms[4] = -big;
  EXPECT_EQ(sum(), 0.0);
  // Lanes 0 and 4 meet first, so the 1 of lane 2 survives; lanes 0 and 2 meet later, so that of lane 4 does
  // not.
  terms.assign(16, 0.0);
  terms[0] = big, terms[4] = -big, terms[2] = 1;
  EXPECT_EQ(sum(), 1.0);
  terms.assign(16, 0.0);
  terms[0] = big, terms[2] = -big, terms[4] = 1;
  EXPECT_EQ(sum(), 0.0);
  // Even lanes meet before odd ones: the 1 of lane 3 is lost with lane 1, survives with lane 2.
  terms.assign(16, 0.0);
  terms[0] = big, terms[1] = -big, terms[3] = 1;
  EXPECT_EQ(sum(), 0.0);
  terms.assign(16, 0.0);
  terms[0] = big, terms[2] = -big, terms[3] = 1;
  EXPECT_EQ(sum(), 1.0);
}

TEST(OracleMetric, CosineOfAVectorAndItselfIsZero) {
  const support::Values values = support::generate(support::Kind::mixed_ranges, 500, 13, 1);
  for (std::size_t row = 0; row < values.rows(); ++row)
    EXPECT_EQ(reported(Metric::cosine, values.row(row), values.row(row)), 0.0F) << row;
}

TEST(OracleKnn, OrdersByReportedValueThenId) {
  support::Values base(5, 1);
  const std::array<double, 5> coordinates = {3, 1, -1, 0, 2};
  for (std::size_t row = 0; row < 5; ++row) base(row, 0) = coordinates[row];
  const support::Rows rows(base, ElementType::f32);
  const support::Rows query(support::Values(1, 1), ElementType::f32);
  const Answer answer = oracle::knn(query, rows, 5, Metric::sqeuclidean);
  EXPECT_EQ(answer.ids, (std::vector<Id>{3, 1, 2, 4, 0}));
  EXPECT_EQ(answer.distances, (std::vector<float>{0, 1, 1, 4, 9}));

  support::Values one(1, 1);
  one(0, 0) = 1;
  const Answer products = oracle::knn(support::Rows(one, ElementType::f32), rows, 3, Metric::inner_product);
  EXPECT_EQ(products.ids, (std::vector<Id>{0, 4, 1}));
  EXPECT_EQ(products.distances, (std::vector<float>{3, 2, 1}));
}

// Values that differ in f64 but not once reported are a tie.
TEST(OracleKnn, TiesAreTiesOfTheReportedValue) {
  support::Values base(2, 2);
  base(0, 0) = 1, base(0, 1) = 0x1p-14;  // 1 + 2^-28, rounds to 1
  base(1, 0) = 1, base(1, 1) = 0;
  const support::Rows query(support::Values(1, 2), ElementType::f32);
  const Answer answer = oracle::knn(query, support::Rows(base, ElementType::f32), 2, Metric::sqeuclidean);
  EXPECT_EQ(answer.ids, (std::vector<Id>{0, 1}));
  EXPECT_EQ(answer.distances, (std::vector<float>{1, 1}));
}

TEST(OracleKnn, PadsShortRows) {
  const support::Rows base(support::Values(1, 2), ElementType::f32);
  const float infinity = std::numeric_limits<float>::infinity();
  const Answer near = oracle::knn(base, base, 2, Metric::euclidean);
  EXPECT_EQ(near.ids, (std::vector<Id>{0, no_id}));
  EXPECT_EQ(near.distances, (std::vector<float>{0, infinity}));
  EXPECT_EQ(oracle::knn(base, base, 2, Metric::inner_product).distances, (std::vector<float>{0, -infinity}));
}

}  // namespace
}  // namespace nearwise
