// Codes, decoded rows and searches of additive quantizers against their definitions in double precision.
#include "nearwise/quantize/additive_quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "support/additive_cases.h"

namespace nearwise {
namespace {

using support::as_oracle;
using support::costs_of;
using support::Kind;
using support::Rows;
using support::to_vector;
using support::untrained_additive;

// A few codewords per codebook, again and again: all codes can be tried.
AdditiveQuantizer with_few_codewords(std::size_t dim, std::size_t codebooks, std::size_t codewords,
                                     std::uint64_t seed) {
  const AdditiveQuantizer all = untrained_additive(Kind::normal, dim, codebooks, seed);
  std::vector<float> numbers(all.codewords().begin(), all.codewords().end());
  for (std::size_t book = 0; book < codebooks; ++book)
    for (std::size_t codeword = codewords; codeword < 256; ++codeword)
      std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>((book * 256 + codeword % codewords) * dim),
                  dim, numbers.begin() + static_cast<std::ptrdiff_t>((book * 256 + codeword) * dim));
  return AdditiveQuantizer::from_codebooks(dim, numbers, all.norms());
}

// Would catch: tables of the wrong pair or orientation, wrong signs, a search that stops too early.
TEST(AdditiveCodes, TheBestOfAllCodesWhereAllCanBeTried) {
  for (const std::size_t dim : {1UL, 3UL, 8UL, 17UL}) {
    const AdditiveQuantizer quantizer = with_few_codewords(dim, 4, 4, 50 + dim);
    const oracle::AdditiveQuantizer reference = as_oracle(quantizer);
    const Rows rows(support::generate(Kind::normal, 60, dim, 51), ElementType::f32);
    const std::vector<double> values = oracle::to_doubles(rows);
    const std::vector<double> costs =
        costs_of(quantizer, rows, quantizer.encode(Context::cpu(), rows, {.iterations = 60, .perturbed = 3}));
    std::size_t missed = 0;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      const double least = oracle::least_cost(reference, std::span(values).subspan(row * dim, dim), 4);
      EXPECT_GE(costs[row], least * (1 - 1e-9));
      // Entries are rounded: codes as good as the best may be kept instead.
      if (costs[row] > least + 1e-3) ++missed;
    }
    EXPECT_LE(missed, 1U) << "dim " << dim;
  }
}

// Each row on its own: never worse than after a shorter search.
TEST(AdditiveCodes, MoreIterationsNeverRaiseACost) {
  for (const Kind kind :
       {Kind::normal, Kind::uniform, Kind::integers, Kind::sparse, Kind::tiny, Kind::huge}) {
    SCOPED_TRACE(name(kind));
    const AdditiveQuantizer quantizer = untrained_additive(kind, 19, 5, 60);
    const Rows rows(support::generate(kind, 100, 19, 61), ElementType::f32);
    std::vector<double> last =
        costs_of(quantizer, rows, quantizer.encode(Context::cpu(), rows, {.iterations = 1, .passes = 1}));
    const double first_sum = std::accumulate(last.begin(), last.end(), 0.0);
    for (const std::size_t iterations : {1UL, 2UL, 8UL, 32UL}) {
      const std::vector<double> costs = costs_of(
          quantizer, rows, quantizer.encode(Context::cpu(), rows, {.iterations = iterations, .passes = 4}));
      for (std::size_t row = 0; row < rows.rows() && iterations != 1; ++row)
        EXPECT_LE(costs[row], last[row] * (1 + 1e-5)) << "row " << row << " iterations " << iterations;
      last = costs;
    }
    EXPECT_LT(std::accumulate(last.begin(), last.end(), 0.0), first_sum);
  }
}

// Every code that is kept has come to the end of a descent.
TEST(AdditiveCodes, BetterThanAResidualQuantizerAndNearlyALocalOptimum) {
  const AdditiveQuantizer quantizer = untrained_additive(Kind::normal, 12, 4, 70);
  const oracle::AdditiveQuantizer reference = as_oracle(quantizer);
  const Rows rows(support::generate(Kind::normal, 40, 12, 71), ElementType::f32);
  const std::vector<double> values = oracle::to_doubles(rows);
  const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows, {.iterations = 16, .passes = 50});
  const std::vector<double> costs = costs_of(quantizer, rows, codes);
  double sum = 0;
  double residual = 0;
  double gain = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const std::span<const double> value = std::span(values).subspan(row * 12, 12);
    residual += oracle::cost(reference, value, oracle::residual_code(reference, value));
    const auto codewords = support::codewords_of_code(codes, row);
    for (std::size_t book = 0; book < 4; ++book) {
      oracle::AdditiveCode code(codewords.begin(), codewords.end());
      code[book] = oracle::best_codeword(reference, value, code, book);
      const double better = oracle::cost(reference, value, code);
      EXPECT_LE(better, costs[row]);
      gain += costs[row] - better;
    }
    sum += costs[row];
  }
  EXPECT_LT(sum, residual);
  // What the rounding of the tables loses.
  EXPECT_LT(gain, 0.005 * sum);
}

TEST(AdditiveCodes, RowsBesideARowDoNotMatter) {
  const AdditiveQuantizer quantizer = untrained_additive(Kind::normal, 16, 6, 80);
  const Rows rows(support::generate(Kind::exact_duplicates, 150, 16, 81), ElementType::f32);
  const Matrix<std::uint8_t> all = quantizer.encode(Context::cpu(), rows);
  for (const std::size_t first : {0UL, 1UL, 77UL, 149UL}) {
    const Matrix<std::uint8_t> one = quantizer.encode(Context::cpu(), rows.view().slice(first, 1));
    EXPECT_TRUE(std::ranges::equal(one.row(0), all.row(first))) << first;
  }
  const Context other = Context::cpu({.seed = 1});
  EXPECT_NE(to_vector(all), to_vector(quantizer.encode(other, rows)));
}

TEST(AdditiveCodes, EveryElementTypeAndLayout) {
  const AdditiveQuantizer quantizer = untrained_additive(Kind::normal, 19, 3, 90);
  for (const ElementType type : support::every_type)
    for (const support::Layout layout :
         {support::Layout::dense, support::Layout::padded, support::Layout::unaligned})
      for (const std::size_t count : {1UL, 5UL}) {
        const Rows rows(support::generate(Kind::normal, count, 19, 91), type, layout);
        const std::vector<double> values = oracle::to_doubles(rows);
        Matrix<float> floats(count, 19);
        std::ranges::transform(values, floats.data(), [](double value) { return static_cast<float>(value); });
        EXPECT_TRUE(support::same(to_vector(quantizer.encode(Context::cpu(), floats)),
                                  quantizer.encode(Context::cpu(), rows)));
      }
}

TEST(AdditiveCodes, DecodedRowsErrorsAndLengths) {
  const AdditiveQuantizer quantizer = untrained_additive(Kind::normal, 7, 3, 100);
  const oracle::AdditiveQuantizer reference = as_oracle(quantizer);
  const Rows rows(support::generate(Kind::normal, 1500, 7, 101), ElementType::f32);
  const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows, {.iterations = 2});
  const Matrix<float> decoded = quantizer.decode(Context::cpu(), codes);
  const std::vector<double> values = oracle::to_doubles(rows);
  double error = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const std::vector<double> sum = oracle::sum_of(reference, support::codewords_of_code(codes, row));
    double length = 0;
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(decoded(row, i), static_cast<float>(sum[i]));
      const double difference = values[row * 7 + i] - static_cast<double>(decoded(row, i));
      error += difference * difference;
      length += sum[i] * sum[i];
    }
    std::size_t nearest = 0;
    for (std::size_t level = 1; level < 256; ++level)
      if (std::abs(static_cast<double>(quantizer.norms()[level]) - length) <
          std::abs(static_cast<double>(quantizer.norms()[nearest]) - length))
        nearest = level;
    EXPECT_EQ(codes(row, 3), nearest);
  }
  EXPECT_NEAR(quantizer.error(Context::cpu(), rows, {.iterations = 2}), error / 1500, 1e-9 * error);
  EXPECT_EQ(quantizer.encode(Context::cpu(), Matrix<float>(0, 7)).cols(), 4U);
  EXPECT_EQ(quantizer.decode(Context::cpu(), Matrix<std::uint8_t>(0, 4)).rows(), 0U);
}

// The definition in the header, in f32 and to the bit, for any tile.
TEST(AdditiveSearch, TheBestByTheSumsOfTheirEntries) {
  const AdditiveQuantizer quantizer = untrained_additive(Kind::integers, 6, 3, 110);
  const Rows rows(support::generate(Kind::integers, 700, 6, 111), ElementType::f32);
  const Rows queries(support::generate(Kind::integers, 33, 6, 112), ElementType::f32);
  const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows, {.iterations = 2});
  const std::vector<double> values = oracle::to_doubles(queries);
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
    const double factor = metric == Metric::inner_product ? 1 : -2;
    for (const std::size_t k : {1UL, 10UL, 700UL, 705UL}) {
      std::vector<Id> ids;
      std::vector<float> distances;
      for (std::size_t query = 0; query < 33; ++query) {
        std::vector<std::pair<float, Id>> all;
        for (std::size_t row = 0; row < 700; ++row) {
          float sum = 0;
          for (std::size_t book = 0; book < 3; ++book) {
            double product = 0;
            for (std::size_t i = 0; i < 6; ++i)
              product += values[query * 6 + i] * factor *
                         static_cast<double>(quantizer.codewords()[(book * 256 + codes(row, book)) * 6 + i]);
            sum += static_cast<float>(product);
          }
          double length = 0;
          for (std::size_t i = 0; i < 6; ++i) length += values[query * 6 + i] * values[query * 6 + i];
          if (metric == Metric::sqeuclidean)
            sum += static_cast<float>(length + static_cast<double>(quantizer.norms()[codes(row, 3)]));
          all.emplace_back(metric == Metric::inner_product ? -sum : sum, static_cast<Id>(row));
        }
        std::ranges::sort(all);
        for (std::size_t rank = 0; rank < k; ++rank) {
          const bool there = rank < all.size();
          const float worst = metric == Metric::inner_product ? -INFINITY : INFINITY;
          ids.push_back(there ? all[rank].second : no_id);
          distances.push_back(there ? (metric == Metric::inner_product ? -all[rank].first : all[rank].first)
                                    : worst);
        }
      }
      for (const Context& context : support::every_instruction_set()) {
        const Neighbors found = quantizer.search(context, queries, codes, k, {.metric = metric});
        EXPECT_EQ(to_vector(found.ids), ids) << name(metric) << " k " << k;
        for (std::size_t i = 0; i < distances.size(); ++i)
          ASSERT_EQ(found.distances.data()[i], distances[i]) << i;
      }
    }
  }
  EXPECT_EQ(quantizer.search(Context::cpu(), queries, codes.view().slice(0, 0), 2).ids(0, 1), no_id);
}

}  // namespace
}  // namespace nearwise
