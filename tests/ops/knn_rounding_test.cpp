// Exact search where the order of summation shows: pairs whose sum in f64 lies on the boundary between two
// f32 numbers, so that another order, or a fused multiply-add, reports another bit.
//
// On ordinary data such a fault changes one reported value in some 2^28 and no test would notice. Every test
// here first makes sure that its data would show the fault.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::Values;
using Terms = std::vector<std::pair<double, double>>;  // factors: each term is their product

template <std::size_t Lanes>
double by_lanes(const Terms& terms) {
  std::array<double, Lanes> lane{};
  for (std::size_t i = 0; i < terms.size(); ++i) lane[i % Lanes] += terms[i].first * terms[i].second;
  return std::accumulate(lane.begin(), lane.end(), 0.0);
}

// Eight lanes as defined, but combined from left to right, pair by neighbouring pair, or with fused
// multiply-adds.
double left_to_right(const Terms& terms) { return by_lanes<8>(terms); }
double neighbouring_pairs(const Terms& terms) {
  std::array<double, 8> lane{};
  for (std::size_t i = 0; i < terms.size(); ++i) lane[i % 8] += terms[i].first * terms[i].second;
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}
double fused(const Terms& terms) {
  std::array<double, 8> lane{};
  for (std::size_t i = 0; i < terms.size(); ++i)
    lane[i % 8] = std::fma(terms[i].first, terms[i].second, lane[i % 8]);
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}
// What a tail in a loop of its own does: whole eights first, the rest added to the total.
double separate_tail(const Terms& terms) {
  const std::size_t whole = terms.size() / 8 * 8;
  double sum =
      oracle::fixed_order_sum(whole, [&](std::size_t i) { return terms[i].first * terms[i].second; });
  for (std::size_t i = whole; i < terms.size(); ++i) sum += terms[i].first * terms[i].second;
  return sum;
}

struct Fault {
  const char* what;
  double (*sum)(const Terms&);
};
constexpr std::array faults = {Fault{"one lane", by_lanes<1>},
                               Fault{"four lanes", by_lanes<4>},
                               Fault{"sixteen lanes", by_lanes<16>},
                               Fault{"lanes combined from left to right", left_to_right},
                               Fault{"lanes combined in neighbouring pairs", neighbouring_pairs},
                               Fault{"fused multiply-add", fused},
                               Fault{"separate tail", separate_tail}};

Terms terms_of(Metric metric, std::span<const double> query, std::span<const double> row) {
  Terms terms;
  for (std::size_t i = 0; i < query.size(); ++i)
    terms.push_back(metric == Metric::inner_product ? std::pair(query[i], row[i])
                                                    : std::pair(query[i] - row[i], query[i] - row[i]));
  return terms;
}

// How many reported values the fault would change.
std::size_t changed_by(const Fault& fault, Metric metric, RowsView queries, RowsView base) {
  const std::vector<double> query_values = oracle::to_doubles(queries);
  const std::vector<double> base_values = oracle::to_doubles(base);
  const std::size_t dim = queries.dim();
  std::size_t changed = 0;
  for (std::size_t query = 0; query < queries.rows(); ++query)
    for (std::size_t row = 0; row < base.rows(); ++row) {
      const std::span<const double> query_row(query_values.data() + query * dim, dim);
      const std::span<const double> base_row(base_values.data() + row * dim, dim);
      double sum = fault.sum(terms_of(metric, query_row, base_row));
      if (metric == Metric::euclidean) sum = std::sqrt(sum);
      changed += static_cast<float>(sum) != oracle::reported(metric, query_row, base_row) ? 1 : 0;
    }
  return changed;
}

// Rows whose squared distance to the query is as close as f64 allows to the middle between two f32 numbers.
// The first coordinate takes the distance up to 2^-46 of it, the second one the rest.
Values rows_on_boundaries(std::span<const double> query, std::size_t rows, std::uint64_t seed) {
  const std::size_t dim = query.size();
  Values values = support::generate(Kind::normal, rows, dim, seed);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<double> base = values.row(row);
    for (std::size_t i = 0; i < dim; ++i) base[i] = static_cast<float>(i >= 2 ? base[i] * 0x1p-7 : 0.0);
    const auto sum = [&] {
      return oracle::fixed_order_sum(
          dim, [&](std::size_t i) { return (query[i] - base[i]) * (query[i] - base[i]); });
    };
    const auto below = static_cast<float>(sum());
    const float next = std::nextafter(std::nextafter(below, INFINITY), INFINITY);
    const double middle =
        (static_cast<double>(next) + static_cast<double>(std::nextafter(next, INFINITY))) / 2;
    base[0] = std::nextafter(static_cast<float>(std::sqrt(middle - sum())), 0.0F);
    base[1] = static_cast<float>(std::sqrt(std::max(0.0, middle - sum())));
  }
  return values;
}

class KnnRounding : public testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Dim, KnnRounding, testing::Values(17, 23, 25, 33, 47, 65, 100, 131));

TEST_P(KnnRounding, SquaredDifferencesAreSummedInTheDocumentedOrder) {
  const std::size_t dim = GetParam();
  Values query = support::generate(Kind::normal, 40, dim, dim);
  // f32 numbers, and zero where the rows are adjusted.
  for (std::size_t row = 0; row < query.rows(); ++row)
    for (std::size_t i = 0; i < dim; ++i) query(row, i) = static_cast<float>(i >= 2 ? query(0, i) : 0.0);
  const Rows queries(query, ElementType::f32);
  const Rows base(rows_on_boundaries(query.row(0), 300, dim + 1), ElementType::f32);
  for (const Fault& fault : faults)
    EXPECT_GT(changed_by(fault, Metric::sqeuclidean, queries.view().slice(0, 1), base), 2U) << fault.what;
  for (const std::size_t count : support::few_and_many)
    support::expect_oracle_answer(queries.view().slice(0, count), base, 300, {.metric = Metric::sqeuclidean});
}

// The same with the sides changed, since there is a kernel for every element type of the base.
TEST_P(KnnRounding, SquaredDifferencesForEveryTypeOfBase) {
  const std::size_t dim = GetParam();
  for (const ElementType type : support::every_type) {
    Values numbers = support::generate(Kind::normal, 5, dim, dim + 4);
    for (std::size_t row = 0; row < numbers.rows(); ++row) numbers(row, 0) = numbers(row, 1) = 0.0;
    const Rows base(numbers, type);
    const std::vector<double> exact = oracle::to_doubles(base);
    const Rows queries(rows_on_boundaries({exact.data(), dim}, 300, dim + 5), ElementType::f32);
    SCOPED_TRACE(name(type));
    for (const Fault& fault : faults)
      EXPECT_GT(changed_by(fault, Metric::sqeuclidean, queries, base.view().slice(0, 1)), 2U) << fault.what;
    support::expect_oracle_answer(queries, base, 5, {.metric = Metric::sqeuclidean});
    for (std::size_t query = 0; query < 300; query += 2)
      support::expect_oracle_answer(queries.view().slice(query, 2), base, 5, {.metric = Metric::sqeuclidean});
  }
}

// Terms of 2^60 that cancel exactly and lose what was added to them before. Products of f32 numbers are exact
// in f64, so that a fused multiply-add changes nothing here.
TEST_P(KnnRounding, ProductsAreSummedInTheDocumentedOrder) {
  const std::size_t dim = GetParam();
  const Rows queries(support::generate(Kind::cancelling, 40, dim, dim + 2), ElementType::f32);
  const Rows base(support::generate(Kind::cancelling, 300, dim, dim + 3), ElementType::bf16);
  for (const Fault& fault : faults) {
    if (std::string(fault.what) == "fused multiply-add") continue;
    EXPECT_GT(changed_by(fault, Metric::inner_product, queries, base), 2U) << fault.what;
  }
  for (const std::size_t count : support::few_and_many)
    for (const Metric metric : {Metric::inner_product, Metric::cosine})
      support::expect_oracle_answer(queries.view().slice(0, count), base, 300, {.metric = metric});
}

// Parallel vectors that are not equal: the quotient may exceed 1 by a rounding. Would catch: a missing clamp,
// and one that is applied after rounding to f32 only by luck.
TEST(KnnRoundingOfCosine, ParallelVectorsAreNeverAtANegativeDistance) {
  Values direction = support::generate(Kind::integers, 1, 40, 1);
  Values base(400, 40);
  std::size_t beyond_one = 0;
  for (std::size_t row = 0; row < base.rows(); ++row) {
    // Divided out in f32: almost, and often exactly, parallel.
    const double factor = (row % 2 == 0 ? 1.0 : -1.0) * (1.0 + static_cast<double>(row));
    for (std::size_t i = 0; i < 40; ++i) base(row, i) = static_cast<float>(direction(0, i) * factor / 7.0);
  }
  const auto quotient = [&](std::span<const double> query, std::span<const double> row) {
    const auto dot = [&](std::span<const double> left, std::span<const double> right) {
      return oracle::fixed_order_sum(40, [&](std::size_t i) { return left[i] * right[i]; });
    };
    return dot(query, row) / std::sqrt(dot(query, query) * dot(row, row));
  };
  for (std::size_t query = 0; query < 10; ++query)
    for (std::size_t row = 0; row < base.rows(); ++row)
      beyond_one += std::fabs(quotient(base.row(query), base.row(row))) > 1.0 ? 1 : 0;
  ASSERT_GT(beyond_one, 20U) << "the data shows nothing";
  const Rows rows(base, ElementType::f32);
  for (const std::size_t queries : support::few_and_many)
    support::expect_oracle_answer(rows.view().slice(0, queries), rows, 400, {.metric = Metric::cosine});
}

}  // namespace
}  // namespace nearwise
