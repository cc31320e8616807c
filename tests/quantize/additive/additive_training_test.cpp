// What training of additive quantizers must achieve, that nothing but rows, options and seed decides it, and
// its limits.
//
// The suites named *Threads* are those that ThreadSanitizer runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backend/stages.h"
#include "nearwise/quantize/product_quantizer.h"
#include "quantize/additive/additive_least_squares.h"
#include "support/additive_cases.h"
#include "support/cancelling.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using support::codewords_of;
using support::Kind;
using support::Rows;
using support::to_vector;

using Call = std::function<void(const Context&)>;

// A small change of any codeword makes the error, with its regularisation, no smaller. Would catch: counts or
// right sides of the wrong codebook.
TEST(AdditiveLeastSquares, CodewordsAreTheMinimum) {
  constexpr std::size_t dim = 3;
  constexpr std::size_t books = 2;
  constexpr std::size_t count = 900;
  const Rows rows(support::generate(Kind::normal, count, dim, 120), ElementType::f32);
  const MatrixView<const float> view(reinterpret_cast<const float*>(rows.view().data()), count, dim);
  Matrix<std::uint8_t> codes(count, books);
  const Random random(121);
  for (std::size_t i = 0; i < count * books; ++i)
    codes.data()[i] = static_cast<std::uint8_t>(random.below(i, 40));
  const Context context = Context::cpu();
  std::vector<float> codewords(books * 256 * dim, 1.0F);
  quantize::AdditiveLeastSquares squares(context, books, dim);
  for (int again = 0; again < 2; ++again) squares.fit(view, codes, codewords);
  const auto objective = [&](const std::vector<float>& candidate) {
    double sum = 0;
    for (std::size_t row = 0; row < count; ++row)
      for (std::size_t i = 0; i < dim; ++i) {
        double rest = static_cast<double>(view(row, i));
        for (std::size_t book = 0; book < books; ++book)
          rest -= static_cast<double>(candidate[(book * 256 + codes(row, book)) * dim + i]);
        sum += rest * rest;
      }
    // A fiftieth of the rows that a codeword has on average.
    for (const float codeword : candidate)
      sum += 0.02 * count / 256 * static_cast<double>(codeword) * static_cast<double>(codeword);
    return sum;
  };
  const double least = objective(codewords);
  for (const std::size_t at : {0UL, 5UL, 39UL * 3, 256UL * 3, (256UL + 17) * 3 + 2})
    for (const float step : {-1e-2F, 1e-2F}) {
      std::vector<float> other = codewords;
      other[at] += step;
      EXPECT_GT(objective(other), least) << at;
    }
  // Codewords that no code names.
  for (std::size_t codeword = 40; codeword < 256; ++codeword) EXPECT_EQ(codewords[codeword * dim], 0);
}

// Would catch: an alternation that goes nowhere, codebooks without effect, noise that stays.
TEST(AdditiveTraining, ErrorFallsWithRoundsAndCodebooks) {
  const Rows rows(support::generate(Kind::normal, 1500, 12, 130), ElementType::f32);
  const Context context = Context::cpu();
  const auto error = [&](const AdditiveQuantizerOptions& options) {
    return AdditiveQuantizer::train(context, rows, options).error(context, rows, {.iterations = 8});
  };
  const double residual = error({.codebooks = 3, .rounds = 0});
  const double trained = error({.codebooks = 3, .rounds = 6, .iterations = 4});
  EXPECT_LT(trained, 0.9 * residual);
  EXPECT_LT(error({.codebooks = 4, .rounds = 6, .iterations = 4}), 0.8 * trained);
  const double product =
      ProductQuantizer::train(context, rows, {.parts = 3, .training_rows = rows.rows()}).error(context, rows);
  EXPECT_LT(trained, 0.9 * product);
}

TEST(AdditiveTraining, LengthsAreThoseOfWhatCodesStandFor) {
  const Rows rows(support::generate(Kind::offset_1e4, 600, 5, 131), ElementType::f32);
  const Context context = Context::cpu();
  const AdditiveQuantizer trained = AdditiveQuantizer::train(context, rows, {.codebooks = 2, .rounds = 1});
  EXPECT_TRUE(std::ranges::is_sorted(trained.norms()));
  const Matrix<std::uint8_t> codes = trained.encode(context, rows);
  const Matrix<float> decoded = trained.decode(context, codes);
  for (std::size_t row = 0; row < 600; ++row) {
    double length = 0;
    for (std::size_t i = 0; i < 5; ++i) length += std::pow(static_cast<double>(decoded(row, i)), 2);
    EXPECT_NEAR(static_cast<double>(trained.norms()[codes(row, 2)]) / length, 1, 1e-4);
  }
}

TEST(AdditiveThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  for (const Kind kind : {Kind::exact_duplicates, Kind::mixed_ranges}) {
    const Rows rows(support::generate(kind, 400, 7, 132), ElementType::f32);
    const AdditiveQuantizerOptions options = {
        .codebooks = 3, .rounds = 2, .iterations = 2, .training_rows = 256};
    const Context one = Context::cpu({.threads = 1});
    const AdditiveQuantizer expected = AdditiveQuantizer::train(one, rows, options);
    const std::vector<std::uint8_t> codes = to_vector(expected.encode(one, rows));
    const double error = expected.error(one, rows);
    std::vector<Context> contexts = support::every_instruction_set();
    contexts.push_back(Context::cpu({.threads = 3}));
    for (const Context& context : contexts) {
      SCOPED_TRACE(fmt::format("{} {} threads {}", name(kind), context.threads(), context.isa()));
      const AdditiveQuantizer trained = AdditiveQuantizer::train(context, rows, options);
      EXPECT_EQ(codewords_of(trained), codewords_of(expected));
      EXPECT_TRUE(support::same(codes, trained.encode(context, rows)));
      EXPECT_EQ(trained.error(context, rows), error);
    }
  }
}

// What the library itself says is needed: the largest number in the refusal of a limit of one byte.
std::uint64_t min_memory(const Call& call, int threads) {
  const Context context = Context::cpu({.threads = threads, .memory_limit = 1});
  const auto error = support::error_from([&] { call(context); });
  if (!error || error->code() != ErrorCode::out_of_memory) {
    ADD_FAILURE() << (error ? error->what() : "one byte was enough");
    return 0;
  }
  return std::ranges::max(support::sizes_in(error->what()));
}

void expect_runs_within_limit(const Call& call) {
  for (const int threads : {1, 3}) {
    const std::uint64_t least = min_memory(call, threads);
    const Context context = Context::cpu({.threads = threads, .memory_limit = least});
    SCOPED_TRACE(fmt::format("{} threads, limit {}", threads, least));
    EXPECT_NO_THROW(call(context));
    EXPECT_LE(context.memory_peak(), least);
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

TEST(AdditiveMemory, TightLimitsGiveTheSameBytesWithinTheLimit) {
  const Rows rows(support::generate(Kind::normal, 700, 9, 133), ElementType::f32);
  const AdditiveQuantizerOptions options = {
      .codebooks = 2, .rounds = 1, .iterations = 2, .training_rows = 512};
  const AdditiveQuantizer expected = AdditiveQuantizer::train(Context::cpu(), rows, options);
  const Matrix<std::uint8_t> codes = expected.encode(Context::cpu(), rows);
  const std::vector<Id> ids = to_vector(expected.search(Context::cpu(), rows, codes, 5).ids);
  expect_runs_within_limit([&](const Context& context) {
    EXPECT_EQ(codewords_of(AdditiveQuantizer::train(context, rows, options)), codewords_of(expected));
  });
  expect_runs_within_limit([&](const Context& context) {
    EXPECT_TRUE(support::same(to_vector(codes), expected.encode(context, rows)));
  });
  expect_runs_within_limit([&](const Context& context) { EXPECT_GT(expected.error(context, rows), 0); });
  expect_runs_within_limit(
      [&](const Context& context) { EXPECT_EQ(expected.decode(context, codes).rows(), 700U); });
  expect_runs_within_limit([&](const Context& context) {
    EXPECT_EQ(to_vector(expected.search(context, rows, codes, 5).ids), ids);
  });
}

TEST(AdditiveCancelThreads, StopsWhereverItIs) {
  const Rows rows(support::generate(Kind::normal, 300, 6, 134), ElementType::f32);
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, 6, 2, 135);
  const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows);
  const std::vector<Call> calls = {
      [&](const Context& context) { AdditiveQuantizer::train(context, rows, {.codebooks = 2, .rounds = 1}); },
      [&](const Context& context) { quantizer.encode(context, rows); },
      [&](const Context& context) { quantizer.decode(context, codes); },
      [&](const Context& context) { quantizer.search(context, rows, codes, 3); },
      [&](const Context& context) { quantizer.error(context, rows); }};
  for (const Call& call : calls) {
    const Context cancelled = Context::cpu();
    cancelled.cancel();
    const auto error = support::error_from([&] { call(cancelled); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::cancelled);
  }
  for (const int when : {0, 2}) support::expect_cancelled_at_report(when, 2, "", calls[0]);
}

TEST(AdditiveProgressThreads, CountsUpToTheTotal) {
  const Rows rows(support::generate(Kind::normal, 300, 6, 136), ElementType::f32);
  std::vector<Progress> reports;
  std::atomic<int> seconds = 0;
  const Context context =
      Context::cpu({.threads = 2,
                    .progress = [&](const Progress& report) { reports.push_back(report); },
                    .clock = [&] { return static_cast<double>(++seconds); }});
  const auto expect_total = [&](const std::string& operation, std::uint64_t total) {
    ASSERT_FALSE(reports.empty());
    for (const Progress& report : reports) {
      EXPECT_EQ(report.operation, operation);
      EXPECT_LE(report.done, report.total);
    }
    EXPECT_EQ(reports.back().done, total);
    EXPECT_EQ(reports.back().total, total);
    reports.clear();
  };
  const AdditiveQuantizer trained = AdditiveQuantizer::train(context, rows, {.codebooks = 2, .rounds = 3});
  expect_total("AdditiveQuantizer::train", Stages::total);
  const Matrix<std::uint8_t> codes = trained.encode(context, rows);
  expect_total("AdditiveQuantizer::encode", 300);
  trained.decode(context, codes);
  expect_total("AdditiveQuantizer::decode", 300);
  trained.search(context, rows, codes, 3);
  expect_total("AdditiveQuantizer::search", 300U * 300);
  trained.error(context, rows);
  expect_total("AdditiveQuantizer::error", 300);
}

void expect_refused(const Call& call, const std::string& text) {
  const auto error = support::error_from([&] { call(Context::cpu()); });
  ASSERT_TRUE(error.has_value()) << text;
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
  EXPECT_NE(std::string(error->what()).find(text), std::string::npos) << error->what();
}

TEST(AdditiveErrors, ArgumentsThatMakeNoSense) {
  const Rows rows(support::generate(Kind::normal, 300, 6, 137), ElementType::f32);
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, 6, 2, 138);
  const auto train_refused = [&](RowsView given, const AdditiveQuantizerOptions& options,
                                 const std::string& text) {
    expect_refused([&](const Context& context) { AdditiveQuantizer::train(context, given, options); }, text);
  };
  train_refused(rows, {.codebooks = 0}, "1 to 32 codebooks, got 0");
  train_refused(rows, {.codebooks = 33}, "1 to 32 codebooks, got 33");
  train_refused(rows, {.iterations = 0}, "at least 1 iteration");
  train_refused(rows.view().slice(0, 255), {},
                "at least 256 rows, as many as a codebook has codewords, got 255");
  const Rows wide(support::generate(Kind::normal, 5, 7, 139), ElementType::f32);
  expect_refused([&](const Context& context) { quantizer.encode(context, wide); },
                 "6 elements as in training");
  expect_refused([&](const Context& context) { quantizer.encode(context, rows, {.iterations = 0}); },
                 "iteration");
  expect_refused([&](const Context& context) { quantizer.encode(context, rows, {.passes = 0}); }, "pass");
}

TEST(AdditiveErrors, CodebooksAndSearchesThatMakeNoSense) {
  const Rows rows(support::generate(Kind::normal, 300, 6, 140), ElementType::f32);
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, 6, 2, 141);
  const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows);
  const Matrix<std::uint8_t> short_codes(3, 2);
  expect_refused([&](const Context& context) { quantizer.decode(context, short_codes); }, "3 bytes, got 2");
  expect_refused([&](const Context& context) { quantizer.search(context, rows, short_codes, 1); }, "3 bytes");
  expect_refused([&](const Context& context) { quantizer.search(context, rows, codes, 0); },
                 "k must be at least 1");
  expect_refused(
      [&](const Context& context) { quantizer.search(context, rows, codes, 1, {.metric = Metric::cosine}); },
      "got cosine");
  std::vector<float> codewords(256 * 4, 1.0F);
  std::vector<float> norms = support::even_norms(1);
  const auto refused = [&](std::size_t dim, const std::string& text) {
    expect_refused([&](const Context&) { AdditiveQuantizer::from_codebooks(dim, codewords, norms); }, text);
  };
  refused(0, "at least 1, got 0");
  refused(3, "must be whole, of 768 numbers each, got 1024");
  codewords[7] = std::numeric_limits<float>::infinity();
  refused(4, "number 7 of the codebooks");
  codewords[7] = 1;
  norms[3] = 2;
  refused(4, "in ascending order");
  norms.pop_back();
  refused(4, "256 norms, got 255");
}

// Would catch: codewords that are finite each, with a sum that is not.
TEST(AdditiveErrors, CodewordsWhoseSumOverflows) {
  std::vector<float> codewords(2 * 256 * 4, 1.0F);
  const std::vector<float> norms = support::even_norms(1);
  const auto make = [&](const Context&) { AdditiveQuantizer::from_codebooks(4, codewords, norms); };
  codewords[9 * 4 + 2] = 3e38F;
  make(Context::cpu());
  codewords[(256 + 200) * 4 + 2] = -3e38F;
  expect_refused(make, "dimension 2");
}

TEST(AdditiveErrors, RowsThatAreNotFinite) {
  Rows rows(support::generate(Kind::normal, 300, 6, 142), ElementType::f32);
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, 6, 2, 143);
  const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows);
  rows.put(211, 2, std::nanf(""));
  expect_refused([&](const Context& context) { AdditiveQuantizer::train(context, rows, {}); }, "row 211 ");
  expect_refused([&](const Context& context) { quantizer.encode(context, rows); }, "row 211 ");
  expect_refused([&](const Context& context) { quantizer.error(context, rows); }, "row 211 ");
  expect_refused([&](const Context& context) { quantizer.search(context, rows, codes, 1); }, "query 211 ");
}

}  // namespace
}  // namespace nearwise
