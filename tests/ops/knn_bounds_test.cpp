// Exact search where a faster product in f32 is as wrong as it can be. A search that decides by such a
// product who gets an exact look is right only if its error bound is; ordinary data is far from the bound and
// shows nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nearwise/exact.h"
#include "support/knn_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::Values;

constexpr std::size_t many = support::few_and_many.back();

// The sum in f32, one element after the other, of a start value and negated products: what a kernel would
// compute.
float score_in_f32(double start, std::span<const double> query, std::span<const double> row) {
  auto score = static_cast<float>(start);
  for (std::size_t i = 0; i < query.size(); ++i)
    score = std::fma(-static_cast<float>(query[i]), static_cast<float>(row[i]), score);
  return score;
}

// A first element of 2^24, and then thousands of products that are each too small to change the sum in f32,
// but not together: the error is all that dim roundings can do. Row 0 is the best and looks worse than all
// others. Would catch: an error bound below dim * 2^-24, such as the sqrt(dim) of random errors.
TEST(KnnBounds, ProductsThatVanishOneByOne) {
  constexpr std::size_t dim = 4096;
  Values queries(many, dim);
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    queries(query, 0) = 1;
    for (std::size_t i = 1; i < dim; ++i) queries(query, i) = 0x1p-12;
  }
  Values base(40, dim);
  base(0, 0) = 0x1p24;
  for (std::size_t i = 1; i < dim; ++i) base(0, i) = 0x1p12;
  for (std::size_t row = 1; row < base.rows(); ++row)
    base(row, 0) = 0x1p24 + 1000 + 2.0 * static_cast<double>(row);
  ASSERT_GT(score_in_f32(0, queries.row(0), base.row(0)), score_in_f32(0, queries.row(0), base.row(1)) + 500)
      << "the data shows nothing";
  ASSERT_GT(oracle::reported(Metric::inner_product, queries.row(0), base.row(0)),
            oracle::reported(Metric::inner_product, queries.row(0), base.row(39)));
  const Rows query_rows(queries, ElementType::f32);
  const Rows base_rows(base, ElementType::f32);
  for (const Metric metric : support::every_metric)
    for (const std::size_t k : {1UL, 5UL, 40UL})
      support::expect_oracle_answer(query_rows, base_rows, k, {.metric = metric});
}

// The same for |y|^2 / 2 - q * y. Every row has its mirror image, so that the mean of the rows is zero and
// centring changes nothing.
TEST(KnnBounds, DifferencesThatVanishOneByOne) {
  constexpr std::size_t dim = 4096;
  Values queries(many, dim);
  for (std::size_t query = 0; query < queries.rows(); ++query)
    for (std::size_t i = 1; i < dim; ++i) queries(query, i) = 1;
  Values base(64, dim);
  const auto length_for = [](double half_norm) { return static_cast<float>(std::sqrt(2 * half_norm)); };
  base(0, 0) = length_for(0x1p24);
  for (std::size_t i = 1; i < dim; ++i) base(0, i) = 0.96875;
  for (std::size_t row = 2; row < base.rows(); row += 2)
    base(row, 0) = length_for(0x1p24 - 1000 + static_cast<double>(row));
  for (std::size_t row = 0; row < base.rows(); row += 2)
    for (std::size_t i = 0; i < dim; ++i) base(row + 1, i) = -base(row, i);
  const auto score = [&](std::size_t row) {
    double half_norm = 0;
    for (const double value : base.row(row)) half_norm += value * value / 2;
    return score_in_f32(half_norm, queries.row(0), base.row(row));
  };
  ASSERT_GT(score(0), score(2) + 2000) << "the data shows nothing";
  ASSERT_LT(oracle::reported(Metric::sqeuclidean, queries.row(0), base.row(0)),
            oracle::reported(Metric::sqeuclidean, queries.row(0), base.row(2)));
  const Rows query_rows(queries, ElementType::f32);
  const Rows base_rows(base, ElementType::f32);
  for (const Metric metric : support::every_metric)
    for (const std::size_t k : {1UL, 5UL, 64UL})
      support::expect_oracle_answer(query_rows, base_rows, k, {.metric = metric});
}

// Products of half the smallest f32 number: each one underflows to zero, together they make the best row.
// Would catch: a bound that is relative only.
TEST(KnnBounds, ProductsThatUnderflowOneByOne) {
  constexpr std::size_t dim = 4096;
  Values queries(many, dim);
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    queries(query, 0) = 0x1p-60;
    for (std::size_t i = 1; i < dim; ++i) queries(query, i) = 0x1p-75;
  }
  Values base(40, dim);
  for (std::size_t i = 1; i < dim; ++i) base(0, i) = 0x1p-75;
  for (std::size_t row = 1; row < base.rows(); ++row)
    base(row, 0) = (1000 + static_cast<double>(row)) * 0x1p-89;
  ASSERT_EQ(score_in_f32(0, queries.row(0), base.row(0)), 0.0F) << "the data shows nothing";
  ASSERT_GT(oracle::reported(Metric::inner_product, queries.row(0), base.row(0)),
            oracle::reported(Metric::inner_product, queries.row(0), base.row(39)));
  const Rows query_rows(queries, ElementType::f32);
  const Rows base_rows(base, ElementType::f32);
  for (const Metric metric : support::every_metric)
    for (const std::size_t k : {1UL, 5UL, 40UL})
      support::expect_oracle_answer(query_rows, base_rows, k, {.metric = metric});
}

// Near-duplicates around the queries, far from everything else, before or after rows near the origin. In
// tiles under a memory limit the errors of the long rows must not be taken for those of the short ones, or
// the reverse. Would catch: the bound of the last tile used for candidates of an earlier one.
TEST(KnnBounds, TilesOfLongAndOfShortRows) {
  constexpr std::size_t dim = 64;
  constexpr std::size_t near = 12;  // few, so that the mean stays with the others
  constexpr std::size_t rows = 1000;
  for (const bool near_first : {true, false})
    for (const double spread : {1e-3, 1e-2, 1e-1}) {
      Values values = support::generate(Kind::normal, rows + many, dim, 1);
      const auto move_away = [&](std::size_t row) {
        for (double& value : values.row(row)) value = 1e3 + spread * value;
      };
      for (std::size_t row = 0; row < near; ++row) move_away(near_first ? row + 1 : rows - near - 1 + row);
      for (std::size_t query = rows; query < rows + many; ++query) move_away(query);
      const Rows base(support::slice(values, 0, rows), ElementType::f32);
      const Rows queries(support::slice(values, rows, many), ElementType::f32);
      for (const Metric metric : support::every_metric)
        for (const std::size_t k : {1UL, 4UL, 60UL}) {
          const oracle::Answer expected = oracle::knn(queries, base, k, metric);
          for (const std::string& isa : instruction_sets()) {
            const std::uint64_t least = support::min_memory(queries, base, k, metric, 1, isa);
            for (const std::uint64_t limit : {least, 2 * least, std::uint64_t{0}}) {
              const Context context = Context::cpu({.threads = 1, .memory_limit = limit, .isa = isa});
              EXPECT_TRUE(support::same(expected, knn(context, queries, base, k, {.metric = metric})))
                  << fmt::format("{} {} spread {} k {} limit {} near first {}", isa, name(metric), spread, k,
                                 limit, near_first);
            }
          }
        }
    }
}

}  // namespace
}  // namespace nearwise
