// Exact search for a few queries, which estimates every distance in f32 and evaluates what the estimate
// cannot exclude: ids and the bits of distances against the oracle, at every instruction set.
//
// What these would catch: an error bound of the estimate that is too small (dimensions with many terms,
// products that cancel, denormals), estimates that overflow or vanish and are believed all the same, the tail
// of a batch that is left out or read beyond its end, a row with NaN or infinity that is passed over because
// it seems far away.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "support/attacks.h"
#include "support/cancelling.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::expect_oracle_answer;
using support::Kind;
using support::Layout;
using support::Problem;
using support::Rows;
using support::Values;

constexpr std::size_t max_queries = 5;  // more take another way

class KnnDirect : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, KnnDirect, testing::ValuesIn(support::every_metric), support::metric_name);

TEST_P(KnnDirect, EveryKindOfDataForEveryPairOfTypes) {
  constexpr std::array<std::size_t, 8> dims = {1, 3, 8, 17, 33, 64, 100, 131};
  constexpr std::array layouts = {Layout::dense, Layout::padded, Layout::unaligned};
  std::uint64_t seed = 20'000;
  for (const Kind kind : support::every_kind)
    for (const ElementType base_type : support::every_type)
      for (const ElementType query_type : support::every_type) {
        ++seed;
        const std::size_t rows = 65 + seed * 29 % 150;
        const std::size_t k = seed % 7 == 0 ? rows : 1 + seed % 12;
        const Problem problem = support::make_problem({.kind = kind,
                                                       .rows = rows,
                                                       .queries = 1 + seed % max_queries,
                                                       .dim = dims[seed % dims.size()],
                                                       .base_type = base_type,
                                                       .query_type = query_type,
                                                       .base_layout = layouts[seed % layouts.size()],
                                                       .query_layout = layouts[seed / 3 % layouts.size()],
                                                       .seed = seed});
        SCOPED_TRACE(fmt::format("{} {} against {} rows of {}, k {}, seed {}", name(kind), name(query_type),
                                 rows, name(base_type), k, seed));
        expect_oracle_answer(problem.queries, problem.base, k, {.metric = GetParam()});
        if (HasFailure()) return;
      }
}

TEST_P(KnnDirect, EveryNumberOfQueriesAndRows) {
  for (const std::size_t rows : {1UL, 2UL, 63UL, 64UL, 65UL, 127UL, 128UL, 129UL, 1000UL})
    for (std::size_t queries = 1; queries <= max_queries; ++queries)
      for (const std::size_t k : {std::size_t{1}, rows}) {
        SCOPED_TRACE(fmt::format("{} queries, {} rows, k {}", queries, rows, k));
        const Problem problem = support::make_problem({.kind = Kind::integers,
                                                       .rows = rows,
                                                       .queries = queries,
                                                       .dim = 5,
                                                       .base_layout = Layout::padded,
                                                       .seed = 21'000 + rows});
        expect_oracle_answer(problem.queries, problem.base, k, {.metric = GetParam()});
      }
}

TEST_P(KnnDirect, DataMadeToFoolIt) {
  using Make = support::Numbers (*)(const support::Shape&);
  namespace attacks = support::attacks;
  for (const Make make :
       {attacks::correlated_residuals<16>, attacks::tight_clusters<16>, attacks::tight_clusters<24>,
        attacks::narrow_cone, attacks::outlier_queries, attacks::offset_with_ties, attacks::far_queries,
        attacks::smallest_steps, attacks::denormal_against_huge, attacks::products_that_flush,
        attacks::cancelling_pairs, attacks::last_bits, attacks::worst_to_best, attacks::ladder_of_rows})
    for (const std::size_t dim : {2UL, 129UL, 1500UL}) {
      const support::Numbers numbers =
          make({.rows = 333, .queries = max_queries, .dim = dim, .seed = 22'000 + dim});
      SCOPED_TRACE(dim);
      expect_oracle_answer(Rows(numbers.queries, ElementType::f32), Rows(numbers.base, ElementType::f32), 7,
                           {.metric = GetParam()});
    }
}

// Rows whose distances differ by one unit in the last place of f32, or only beyond it, after rows that fill
// the heap with values as good: the estimate knows nothing about their order. From worst to best, so that
// every row enters the heap.
TEST_P(KnnDirect, NearTiesInTheLastBit) {
  for (const double scale : {1.0, 0x1p-60, 0x1p50})
    for (const double step : {0x1p-23, 0x1p-26}) {
      constexpr std::size_t rows = 300;
      constexpr std::size_t dim = 40;
      Values base(rows, dim);
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < dim; ++i)
          base(row, i) = scale * (1 + (i == row % dim ? step * static_cast<double>(rows - row) : 0));
      Values queries(3, dim);
      for (std::size_t i = 0; i < dim; ++i) {
        queries(0, i) = 0;
        queries(1, i) = -scale;
        queries(2, i) = scale * (i % 2 == 0 ? 1 : -1);
      }
      SCOPED_TRACE(fmt::format("scale {} step {}", scale, step));
      for (const std::size_t k : {1UL, 20UL})
        expect_oracle_answer(Rows(queries, ElementType::f32), Rows(base, ElementType::f32), k,
                             {.metric = GetParam()});
    }
}

// Lengths whose squares vanish or overflow in f32, next to ordinary ones that fill the heap first; directions
// decide for cosine, whatever the lengths.
TEST_P(KnnDirect, LengthsFromTinyToHuge) {
  constexpr std::size_t rows = 500;
  constexpr std::size_t dim = 24;
  Values base = support::generate(Kind::normal, rows, dim, 23'000);
  constexpr std::array exponents = {0, 0, -40, -49, -51, -60, -75, -120, -140, 40, 49, 51, 60, 66, 100, 120};
  for (std::size_t row = 64; row < rows; ++row)
    for (std::size_t i = 0; i < dim; ++i)
      base(row, i) = std::ldexp(base(row, i), exponents[row % exponents.size()]);
  const Values directions = support::generate(Kind::normal, max_queries, dim, 23'001);
  for (const int exponent : {0, -30, -50, -70, -140, 30, 50, 64, 120}) {
    Values queries = directions;
    for (std::size_t query = 0; query < max_queries; ++query)
      for (std::size_t i = 0; i < dim; ++i) queries(query, i) = std::ldexp(queries(query, i), exponent);
    SCOPED_TRACE(exponent);
    for (const std::size_t k : {1UL, 30UL})
      expect_oracle_answer(Rows(queries, ElementType::f32), Rows(base, ElementType::f32), k,
                           {.metric = GetParam()});
  }
}

// Sums that cancel to nothing in f64 and to anything in f32.
TEST(KnnDirectProducts, SumsThatCancel) {
  constexpr std::size_t dim = 96;
  Values base(257, dim);
  Values query(1, dim);
  const Random random(24'000);
  for (std::size_t i = 0; i < dim; ++i) query(0, i) = i % 2 == 0 ? 0x1p30 : -0x1p30;
  for (std::size_t row = 0; row < base.rows(); ++row)
    for (std::size_t i = 0; i < dim; i += 2) {
      base(row, i) = 1 + random.uniform(row * dim + i);
      base(row, i + 1) = base(row, i) + 0x1p-23 * static_cast<double>(random.below(row * dim + i + 1, 5));
    }
  for (const Metric metric : {Metric::inner_product, Metric::cosine})
    expect_oracle_answer(Rows(query, ElementType::f32), Rows(base, ElementType::f32), 9, {.metric = metric});
}

// A bad row at the end, when the heap is full of rows at distance 0 and its good elements are far away.
TEST_P(KnnDirect, BadRowsAreNamedWhenTheHeapIsFull) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::size_t dim = 35;
  Values values(300, dim);
  for (std::size_t row = 0; row < 300; ++row)
    for (std::size_t i = 0; i < dim; ++i) values(row, i) = row < 150 ? 1 : -1000;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
    for (const std::size_t bad_row : {150UL, 191UL, 192UL, 298UL, 299UL})
      for (const std::size_t element : {0UL, 31UL, 34UL}) {
        Rows base(values, ElementType::f32);
        base.put(bad_row, element, bad);
        if (bad_row < 299) base.put(299, 0, bad);  // a later one does not matter
        for (const double number : {1.0, 0.0, -1.0}) {
          Values query(max_queries, dim);
          for (std::size_t i = 0; i < dim; ++i)
            for (std::size_t row = 0; row < max_queries; ++row) query(row, i) = number;
          const Rows queries(query, ElementType::f32);
          for (const std::size_t count : {std::size_t{1}, max_queries})
            for (const Context& context : every_instruction_set()) {
              const auto error = support::error_from(
                  [&] { knn(context, queries.view().slice(0, count), base, 2, {.metric = GetParam()}); });
              ASSERT_TRUE(error.has_value())
                  << bad << " in row " << bad_row << " was passed over at " << context.isa();
              EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
              EXPECT_NE(std::string(error->what()).find(fmt::format("base row {} ", bad_row)),
                        std::string::npos)
                  << error->what() << " instead of row " << bad_row;
              EXPECT_EQ(context.memory_used(), 0U);
            }
        }
      }
}

}  // namespace
}  // namespace nearwise
