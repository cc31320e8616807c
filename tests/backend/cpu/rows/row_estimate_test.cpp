// Estimates in f32 on every instruction set and for every element type, against sums in f64.
//
// Would catch: a lost or duplicate tail, a conversion of f16 or bf16 that loses denormals or signs, sums of
// absolute products without the absolute values, an error beyond the bound of RowEstimator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "oracle/knn.h"
#include "support/knn_cases.h"
#include "support/problems.h"

namespace nearwise::cpu {
namespace {

using support::Kind;
using support::Layout;
using support::Rows;

constexpr std::size_t row_count = 9;

class RowEstimateTest : public testing::TestWithParam<int> {
 protected:
  const RowEstimateKernels& kernels() const {
    return row_estimate_kernels(available_instruction_sets()[static_cast<std::size_t>(GetParam())]);
  }
};

// Error bound of a sum, as in row_estimator.cpp.
void expect_within_bound(float given, double exact, double sum_of_absolutes, std::size_t dim) {
  const double terms = static_cast<double>(dim) + 8;
  if (sum_of_absolutes > 0x1p126) return;  // overflow is tested below
  EXPECT_LE(std::abs(given - exact), terms * 0x1p-23 * sum_of_absolutes + terms * 0x1p-126)
      << given << " instead of " << exact;
}

struct Estimates {
  std::vector<float> sums = std::vector<float>(row_count, -7);
  std::vector<float> others = std::vector<float>(row_count, -7);
};

Estimates estimate(RowEstimateKernels::Function function, const std::vector<float>& query, RowsView base) {
  Estimates out;
  function({.query = query.data(),
            .base = base.row(0),
            .stride_bytes = base.stride_bytes(),
            .dim = base.dim(),
            .count = row_count,
            .sums = out.sums.data(),
            .others = out.others.data()});
  return out;
}

TEST_P(RowEstimateTest, StaysWithinItsBound) {
  std::uint64_t seed = 0;
  for (const ElementType type : support::every_type)
    for (const Kind kind : {Kind::normal, Kind::integers, Kind::offset_1e4, Kind::denormal, Kind::tiny,
                            Kind::overflowing, Kind::sparse, Kind::cancelling, Kind::mixed_ranges})
      for (const std::size_t dim :
           {1UL, 3UL, 7UL, 8UL, 15UL, 16UL, 17UL, 31UL, 33UL, 63UL, 64UL, 65UL, 1000UL}) {
        SCOPED_TRACE(fmt::format("{} {} dim {}", name(type), name(kind), dim));
        const double denormal = type == ElementType::f16 ? 1e-6 : 1e-40;
        const Rows base(support::generate(kind, row_count, dim, ++seed, denormal), type, Layout::unaligned);
        const Rows query_rows(support::generate(kind, 1, dim, seed + 5000, denormal), ElementType::f32);
        const std::vector<double> y = oracle::to_doubles(base);
        const std::vector<double> q = oracle::to_doubles(query_rows);
        const std::vector<float> query(q.begin(), q.end());
        const auto index = static_cast<std::size_t>(type);
        const Estimates differences = estimate(kernels().difference[index], query, base);
        const Estimates products = estimate(kernels().product[index], query, base);
        const Estimates both = estimate(kernels().product_and_norm[index], query, base);
        for (std::size_t row = 0; row < row_count; ++row) {
          double difference = 0;
          double product = 0;
          double absolute = 0;
          double norm = 0;
          for (std::size_t i = 0; i < dim; ++i) {
            const double value = y[row * dim + i];
            difference += (q[i] - value) * (q[i] - value);
            product += q[i] * value;
            absolute += std::abs(q[i] * value);
            norm += value * value;
          }
          expect_within_bound(differences.sums[row], difference, difference, dim);
          expect_within_bound(products.sums[row], product, absolute, dim);
          expect_within_bound(products.others[row], absolute, absolute, dim);
          expect_within_bound(both.sums[row], product, absolute, dim);
          expect_within_bound(both.others[row], norm, norm, dim);
        }
        if (HasFailure()) return;
      }
}

// Integer sums are exact for any number of rows; the kernel processes four at a time.
TEST_P(RowEstimateTest, IntegersAreExact) {
  for (const ElementType type : {ElementType::u8, ElementType::i8})
    for (const std::size_t dim : {1UL, 5UL, 16UL, 31UL, 32UL, 33UL, 64UL, 127UL, 500UL})
      for (std::size_t count = 1; count <= row_count; ++count) {
        SCOPED_TRACE(fmt::format("{} dim {} rows {}", name(type), dim, count));
        const Rows base(support::generate(Kind::integers, row_count, dim, dim + count), type,
                        Layout::unaligned);
        const std::vector<double> y = oracle::to_doubles(base);
        std::vector<std::int16_t> query(dim);
        for (std::size_t i = 0; i < dim; ++i)
          query[i] = static_cast<std::int16_t>((i * 97 + count) % 384) - 128;
        const RowsView view = base;
        const auto run = [&](RowEstimateKernels::Function function) {
          Estimates out;
          function({.integer_query = query.data(),
                    .base = view.row(0),
                    .stride_bytes = view.stride_bytes(),
                    .dim = dim,
                    .count = count,
                    .sums = out.sums.data(),
                    .others = out.others.data()});
          return out;
        };
        const auto index = static_cast<std::size_t>(type);
        const Estimates differences = run(kernels().integer_difference[index]);
        const Estimates products = run(kernels().integer_product[index]);
        for (std::size_t row = 0; row < row_count; ++row) {
          double difference = 0;
          double product = 0;
          for (std::size_t i = 0; i < dim; ++i) {
            difference += (query[i] - y[row * dim + i]) * (query[i] - y[row * dim + i]);
            product += query[i] * y[row * dim + i];
          }
          const bool asked = row < count;
          EXPECT_EQ(differences.sums[row], asked ? static_cast<float>(difference) : -7);
          EXPECT_EQ(products.sums[row], asked ? static_cast<float>(product) : -7);
          EXPECT_EQ(products.others[row], asked ? static_cast<float>(std::abs(product)) : -7);
        }
        if (HasFailure()) return;
      }
}

// Listed rows have the same sums as consecutive rows, in any order and with repetitions, and nothing else is
// written.
TEST_P(RowEstimateTest, ListedRowsHaveTheirOwnSums) {
  const std::uint32_t rows[] = {7, 0, 3, 3, 8, 1};
  for (const ElementType type : {ElementType::f32, ElementType::u8})
    for (const std::size_t dim : {5UL, 16UL, 33UL, 200UL}) {
      const Rows base(support::generate(Kind::integers, row_count, dim, dim), type, Layout::unaligned);
      const std::vector<float> query(dim, 3);
      const std::vector<std::int16_t> integer_query(dim, 3);
      const RowsView view = base;
      const auto index = static_cast<std::size_t>(type);
      std::vector functions = {kernels().difference[index], kernels().product[index],
                               kernels().product_and_norm[index]};
      if (type == ElementType::u8) functions.push_back(kernels().integer_difference[index]);
      for (const RowEstimateKernels::Function function : functions)
        for (std::size_t count = 1; count <= std::size(rows); ++count) {
          SCOPED_TRACE(fmt::format("{} dim {} rows {}", name(type), dim, count));
          RowEstimateArgs args = {.query = query.data(),
                                  .integer_query = integer_query.data(),
                                  .base = view.row(0),
                                  .stride_bytes = view.stride_bytes(),
                                  .dim = dim,
                                  .count = row_count};
          Estimates all;
          args.sums = all.sums.data();
          args.others = all.others.data();
          function(args);
          Estimates listed;
          std::vector<const std::byte*> addresses(count);
          for (std::size_t i = 0; i < count; ++i) addresses[i] = view.row(rows[i]);
          args.addresses = addresses.data();
          args.count = count;
          args.sums = listed.sums.data();
          args.others = listed.others.data();
          function(args);
          for (std::size_t i = 0; i < row_count; ++i) {
            EXPECT_EQ(listed.sums[i], i < count ? all.sums[rows[i]] : -7);
            EXPECT_EQ(listed.others[i], i < count ? all.others[rows[i]] : -7);
          }
          if (HasFailure()) return;
        }
    }
}

// A sum of NaN or infinite terms, or one that overflows, is not finite, so that callers can detect it.
TEST_P(RowEstimateTest, WhatIsNotFiniteShows) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity, 3e38F})
    for (const std::size_t dim : {1UL, 16UL, 33UL, 64UL, 67UL})
      for (const std::size_t place : {std::size_t{0}, dim / 2, dim - 1}) {
        Rows base(support::generate(Kind::normal, row_count, dim, 77), ElementType::f32);
        base.put(4, place, bad);
        // Also for zero queries: infinity times zero must not become zero.
        for (const float number : {1e3F, -1e3F, 0.0F}) {
          const std::vector<float> query(dim, number);
          const auto index = static_cast<std::size_t>(ElementType::f32);
          const bool overflows = bad == 3e38F;
          const Estimates products = estimate(kernels().product[index], query, base);
          const Estimates both = estimate(kernels().product_and_norm[index], query, base);
          EXPECT_FALSE(std::isfinite(estimate(kernels().difference[index], query, base).sums[4]));
          EXPECT_FALSE(std::isfinite(both.others[4]));
          if (overflows && number == 0) continue;  // the sum is zero
          EXPECT_FALSE(std::isfinite(products.sums[4]));
          EXPECT_FALSE(std::isfinite(products.others[4]));
          EXPECT_TRUE(std::isfinite(products.sums[3]) && std::isfinite(products.sums[5]));
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Sets, RowEstimateTest,
                         testing::Range(0, static_cast<int>(available_instruction_sets().size())),
                         [](const auto& test) {
                           return std::string(
                               name(available_instruction_sets()[static_cast<std::size_t>(test.param)]));
                         });

}  // namespace
}  // namespace nearwise::cpu
