// Optimized product quantizers: what rotation and codewords must achieve together, and under which limits.
//
// The suites named *Threads* are those that ThreadSanitizer runs.
#include "nearwise/quantize/optimized_product_quantizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/stages.h"
#include "quantize/product/optimized_training.h"
#include "support/cancelling.h"
#include "support/memory_limits.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::codewords_of;
using support::Kind;
using support::Rows;
using support::same;

// Rows near a plane of few dimensions, spread over all elements: every element tells the same as its
// neighbours.
support::Values correlated(std::size_t rows, std::size_t dim, std::uint64_t seed, double offset = 0) {
  const std::size_t hidden = 4;
  const Random mixing(seed, 1);
  const Random factor(seed, 2);
  const Random noise(seed, 3);
  support::Values values(rows, dim);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < dim; ++i) {
      values(row, i) = offset + 0.05 * noise.normal(row * dim + i);
      for (std::size_t h = 0; h < hidden; ++h)
        values(row, i) += mixing.normal(i * hidden + h) * factor.normal(row * hidden + h);
    }
  return values;
}

TEST(OptimizedProductQuantizerTraining, FarBelowAPlainQuantizerOnCorrelatedRows) {
  for (const double offset : {0.0, 1000.0}) {
    const Rows rows(correlated(3000, 16, 60, offset), ElementType::f32);
    const ProductQuantizerOptions options = {.parts = 4, .bits = 4};
    const double plain = ProductQuantizer::train(Context::cpu(), rows, options).error(Context::cpu(), rows);
    const auto trained = OptimizedProductQuantizer::train(Context::cpu(), rows, {.quantizer = options});
    const double error = trained.error(Context::cpu(), rows);
    EXPECT_LT(error, 0.5 * plain) << "offset " << offset;
    EXPECT_EQ(error, trained.quantizer.error(Context::cpu(), trained.rotation.apply(Context::cpu(), rows)));
  }
}

// Also where every rotation is a loss: rows on a grid along the axes.
TEST(OptimizedProductQuantizerTraining, NeverAboveAPlainQuantizerOnTheRowsItTrainsOn) {
  std::uint64_t seed = 61;
  for (const Kind kind :
       {Kind::normal, Kind::integers, Kind::near_duplicates, Kind::one_hot, Kind::constant_columns,
        Kind::identical, Kind::offset_1e4, Kind::denormal, Kind::tiny, Kind::mixed_ranges})
    for (const std::size_t dim : {1UL, 3UL, 7UL, 17UL})
      for (const ElementType type : {ElementType::f32, ElementType::u8}) {
        const Rows rows(support::generate(kind, 600, dim, ++seed), type);
        const ProductQuantizerOptions options = {.parts = (dim + 1) / 2, .bits = 4, .iterations = 6};
        const double plain =
            ProductQuantizer::train(Context::cpu(), rows, options).error(Context::cpu(), rows);
        for (const std::size_t rounds : {0UL, 3UL}) {
          const auto trained = OptimizedProductQuantizer::train(Context::cpu(), rows,
                                                                {.quantizer = options, .rounds = rounds});
          EXPECT_LE(trained.error(Context::cpu(), rows), plain)
              << name(kind) << " dim " << dim << " " << name(type) << " rounds " << rounds;
        }
      }
}

// What the alternation adds to its start. Would catch: a rotation that is transposed or turned the wrong way.
TEST(OptimizedProductQuantizerTraining, RoundsLowerTheError) {
  // Two rotated grids: principal axes do not find them.
  support::Values values(4000, 4);
  const Random random(62);
  for (std::size_t row = 0; row < values.rows(); ++row) {
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const double left = std::floor(random.uniform(row * 4 + pair * 2) * 4);
      const double right = std::floor(random.uniform(row * 4 + pair * 2 + 1) * 4);
      values(row, pair) = 0.8 * left - 0.6 * right + 50;
      values(row, pair + 2) = 0.6 * left + 0.8 * right;
    }
  }
  const Rows rows(values, ElementType::f32);
  const auto error = [&](std::size_t rounds) {
    return OptimizedProductQuantizer::train(Context::cpu(), rows,
                                            {.quantizer = {.parts = 2, .bits = 4}, .rounds = rounds})
        .error(Context::cpu(), rows);
  };
  const double start = error(0);
  EXPECT_LT(error(1), start);
  EXPECT_LT(error(50), 0.8 * start);
  EXPECT_LE(error(50), error(1));
}

TEST(OptimizedProductQuantizerTraining, TheRotationIsOrthonormalAndKeepsTheOrigin) {
  const Rows rows(correlated(2000, 23, 63, 10), ElementType::f32);
  const auto trained =
      OptimizedProductQuantizer::train(Context::cpu(), rows, {.quantizer = {.parts = 5, .bits = 4}});
  const std::span<const float> matrix = trained.rotation.matrix();
  ASSERT_EQ(trained.rotation.rotated_dim(), 23U);
  for (const float element : trained.rotation.mean()) EXPECT_EQ(element, 0);
  for (std::size_t i = 0; i < 23; ++i)
    for (std::size_t j = 0; j < 23; ++j) {
      double product = 0;
      for (std::size_t k = 0; k < 23; ++k)
        product += static_cast<double>(matrix[i * 23 + k]) * static_cast<double>(matrix[j * 23 + k]);
      EXPECT_NEAR(product, i == j ? 1 : 0, 1e-5);
    }
}

TEST(OptimizedProductQuantizerCodes, AreThoseOfTheRotatedRows) {
  // More rows than a tile takes.
  const Rows rows(correlated(17'000, 9, 64), ElementType::bf16);
  const Context context = Context::cpu();
  const auto trained = OptimizedProductQuantizer::train(
      context, rows, {.quantizer = {.parts = 3, .bits = 4, .training_rows = 800}, .rounds = 2});
  const Matrix<float> rotated = trained.rotation.apply(context, rows);
  const Matrix<std::uint8_t> codes = trained.encode(context, rows);
  EXPECT_TRUE(same(support::to_vector(trained.quantizer.encode(context, rotated)), codes));
  const Matrix<float> decoded = trained.decode(context, codes);
  EXPECT_TRUE(
      same(support::to_vector(trained.rotation.reverse(context, trained.quantizer.decode(context, codes))),
           decoded));
  // The error in the space of the rows is that of the rotated ones.
  const std::vector<double> values = oracle::to_doubles(rows);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += std::pow(values[i] - static_cast<double>(decoded.data()[i]), 2);
  const double error = trained.error(context, rows);
  EXPECT_NEAR(sum / 17'000, error, 1e-5 * error);
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
    EXPECT_TRUE(same(support::to_vector(trained.quantizer.tables(context, rotated, metric)),
                     trained.tables(context, rows, metric)));
}

// Entries add up to distances from decoded rows, and to products with them: the rotation has no mean.
TEST(OptimizedProductQuantizerCodes, TablesAddUp) {
  const Rows rows(correlated(500, 9, 65, 3), ElementType::f32);
  const Context context = Context::cpu();
  const auto trained =
      OptimizedProductQuantizer::train(context, rows, {.quantizer = {.parts = 3, .bits = 4}});
  const Matrix<std::uint8_t> codes = trained.encode(context, rows);
  const Matrix<float> decoded = trained.decode(context, codes);
  const std::vector<double> queries = oracle::to_doubles(rows);
  const std::vector<double> bases = oracle::to_doubles(decoded);
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
    const Matrix<float> tables = trained.tables(context, rows, metric);
    for (std::size_t query = 0; query < 500; query += 50)
      for (std::size_t row = 0; row < 500; row += 7) {
        double sum = 0;
        for (std::size_t part = 0; part < 3; ++part)
          sum += static_cast<double>(tables(query, part * 16 + (codes(row, part / 2) >> part % 2 * 4 & 15)));
        const double expected =
            oracle::reported(metric, {queries.data() + query * 9, 9}, {bases.data() + row * 9, 9});
        EXPECT_NEAR(sum, expected, 1e-3);
      }
  }
}

TEST(OptimizedProductQuantizerThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  const Rows rows(correlated(2000, 11, 66, 5), ElementType::f32);
  const OptimizedProductQuantizerOptions options = {
      .quantizer = {.parts = 3, .bits = 4, .iterations = 3, .training_rows = 1600}, .rounds = 3};
  const auto expected = OptimizedProductQuantizer::train(Context::cpu({.threads = 1}), rows, options);
  std::vector<Context> contexts = support::every_instruction_set();
  contexts.push_back(Context::cpu({.threads = 2}));
  contexts.push_back(Context::cpu({.threads = 5}));
  for (const Context& context : contexts) {
    SCOPED_TRACE(fmt::format("{} threads {}", context.threads(), context.isa()));
    const auto trained = OptimizedProductQuantizer::train(context, rows, options);
    EXPECT_TRUE(std::ranges::equal(trained.rotation.matrix(), expected.rotation.matrix()));
    EXPECT_EQ(codewords_of(trained.quantizer), codewords_of(expected.quantizer));
    EXPECT_EQ(trained.error(context, rows), expected.error(Context::cpu({.threads = 1}), rows));
  }
}

TEST(OptimizedProductQuantizerMemory, RunsWithinTheLimitItNames) {
  const Rows rows(correlated(1500, 13, 67), ElementType::f32);
  const OptimizedProductQuantizerOptions options = {
      .quantizer = {.parts = 3, .bits = 4, .iterations = 2, .training_rows = 800}, .rounds = 2};
  const auto expected = OptimizedProductQuantizer::train(Context::cpu(), rows, options);
  const Matrix<std::uint8_t> codes = expected.encode(Context::cpu(), rows);
  const std::vector<std::function<void(const Context&)>> calls = {
      [&](const Context& context) {
        EXPECT_EQ(codewords_of(OptimizedProductQuantizer::train(context, rows, options).quantizer),
                  codewords_of(expected.quantizer));
      },
      [&](const Context& context) {
        EXPECT_TRUE(same(support::to_vector(codes), expected.encode(context, rows)));
      },
      [&](const Context& context) { expected.decode(context, codes); },
      [&](const Context& context) { expected.tables(context, rows); },
      [&](const Context& context) { expected.error(context, rows); }};
  for (const auto& call : calls)
    for (const int threads : {1, 3}) {
      const auto refusal =
          support::error_from([&] { call(Context::cpu({.threads = threads, .memory_limit = 1})); });
      ASSERT_TRUE(refusal.has_value());
      EXPECT_EQ(refusal->code(), ErrorCode::out_of_memory) << refusal->what();
      const std::uint64_t least = std::ranges::max(support::sizes_in(refusal->what()));
      const Context context = Context::cpu({.threads = threads, .memory_limit = least});
      EXPECT_NO_THROW(call(context));
      EXPECT_LE(context.memory_peak(), least);
      EXPECT_EQ(context.memory_used(), 0U);
    }
}

TEST(OptimizedProductQuantizerCancelThreads, StopsWhereverItIs) {
  // So many that work is left when one of two threads cancels: nobody looks again in the last piece.
  const Rows rows(correlated(20'000, 12, 68), ElementType::f32);
  const auto trained = OptimizedProductQuantizer::train(
      Context::cpu(), rows, {.quantizer = {.parts = 3, .bits = 4, .iterations = 1}, .rounds = 0});
  const Matrix<std::uint8_t> codes = trained.encode(Context::cpu(), rows);
  const std::vector<std::function<void(const Context&)>> calls = {
      [&](const Context& context) {
        OptimizedProductQuantizer::train(context, rows, {.quantizer = {.parts = 3, .bits = 4}});
      },
      [&](const Context& context) { trained.encode(context, rows); },
      [&](const Context& context) { trained.decode(context, codes); },
      [&](const Context& context) { trained.tables(context, rows); },
      [&](const Context& context) { trained.error(context, rows); }};
  for (const auto& call : calls)
    for (const int threads : {1, 2})
      for (const int when : {0, 1}) support::expect_cancelled_at_report(when, threads, "", call);
}

TEST(OptimizedProductQuantizerProgressThreads, CountsUpToTheTotal) {
  const Rows rows(correlated(1000, 8, 69), ElementType::f32);
  std::vector<Progress> reports;
  std::atomic<int> seconds = 0;
  const Context context =
      Context::cpu({.threads = 2,
                    .progress = [&](const Progress& progress) { reports.push_back(progress); },
                    .clock = [&] { return static_cast<double>(++seconds); }});
  OptimizedProductQuantizer::train(context, rows,
                                   {.quantizer = {.parts = 2, .bits = 4, .iterations = 6}, .rounds = 5});
  ASSERT_GT(reports.size(), 3U);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_STREQ(reports[i].operation, "OptimizedProductQuantizer::train");
    EXPECT_EQ(reports[i].total, Stages::total);
    EXPECT_TRUE(i == 0 || reports[i].done >= reports[i - 1].done);
  }
  EXPECT_EQ(reports.back().done, reports.back().total);
}

TEST(OptimizedProductQuantizerErrors, ArgumentsThatMakeNoSense) {
  const Context context = Context::cpu();
  Rows rows(support::generate(Kind::normal, 50, 6, 70), ElementType::f32);
  const auto trained =
      OptimizedProductQuantizer::train(context, rows, {.quantizer = {.bits = 4}, .rounds = 1});
  const auto expect_refused = [&](const std::function<void()>& call, const std::string& words) {
    const auto error = support::error_from(call);
    ASSERT_TRUE(error.has_value()) << words;
    EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
    EXPECT_NE(std::string(error->what()).find("OptimizedProductQuantizer::"), std::string::npos)
        << error->what();
    EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
  };
  const Matrix<float> narrow(1, 5);
  expect_refused([&] { OptimizedProductQuantizer::train(context, rows); }, "256 codewords");
  expect_refused(
      [&] { OptimizedProductQuantizer::train(context, rows, {.quantizer = {.parts = 7, .bits = 4}}); },
      "1 to 6 parts");
  expect_refused([&] { trained.encode(context, narrow); }, "6 elements as in training, got 5");
  expect_refused([&] { trained.tables(context, narrow); }, "got 5");
  expect_refused([&] { trained.tables(context, rows, Metric::cosine); }, "got cosine");
  expect_refused([&] { trained.error(context, rows.view().slice(0, 0)); }, "at least 1 row");
  expect_refused([&] { trained.decode(context, Matrix<std::uint8_t>(1, 5)); }, "1 bytes, got 5");
  const OptimizedProductQuantizer mixed{Rotation::identity(6), support::untrained(Kind::normal, 5, 2, 4, 71)};
  expect_refused([&] { mixed.encode(context, rows); }, "6 dimensions, got 5");
  expect_refused([&] { mixed.decode(context, Matrix<std::uint8_t>(1, 1)); }, "6 dimensions, got 5");
  rows.put(33, 5, std::nanf(""));
  expect_refused([&] { OptimizedProductQuantizer::train(context, rows, {.quantizer = {.bits = 4}}); },
                 "row 33");
  expect_refused([&] { trained.encode(context, rows); }, "row 33");
  expect_refused([&] { trained.tables(context, rows); }, "row 33");
  expect_refused([&] { trained.error(context, rows); }, "row 33");
}

// 100 and 1 are dealt to one part, 10 and 10 to the other; the longer parts are filled up.
TEST(DealAxes, ProductsOfVariancesAreAlike) {
  using quantize::deal_axes;
  EXPECT_EQ(deal_axes({4, 2, 8, {}}, {100, 10, 10, 1}), (std::vector<std::size_t>{0, 3, 1, 2}));
  EXPECT_EQ(deal_axes({5, 2, 8, {}}, {8, 4, 2, 1, 0}), (std::vector<std::size_t>{0, 3, 4, 1, 2}));
  EXPECT_EQ(deal_axes({3, 3, 8, {}}, {0, 0, 0}), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(deal_axes({3, 1, 8, {}}, {3, 2, 1}), (std::vector<std::size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace nearwise
