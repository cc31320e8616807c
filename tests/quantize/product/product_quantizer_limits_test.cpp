// Product quantizers under limits: memory, cancellation, progress, and arguments that are refused.
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
#include "support/cancelling.h"
#include "support/memory_limits.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::codewords_of;
using support::Kind;
using support::Rows;

using Call = std::function<void(const Context&)>;

// What the library itself says is needed: the largest number in the refusal of a limit of one byte.
std::uint64_t min_memory(const Call& call, int threads, const std::string& isa) {
  const Context context = Context::cpu({.threads = threads, .memory_limit = 1, .isa = isa});
  const auto error = support::error_from([&] { call(context); });
  if (!error || error->code() != ErrorCode::out_of_memory) {
    ADD_FAILURE() << (error ? error->what() : "one byte was enough");
    return 0;
  }
  EXPECT_EQ(context.memory_used(), 0U);
  return std::ranges::max(support::sizes_in(error->what()));
}

// Runs under the least limit and within it.
void expect_runs_within_limit(const Call& call) {
  for (const std::string& isa : instruction_sets())
    for (const int threads : {1, 3}) {
      const std::uint64_t least = min_memory(call, threads, isa);
      const Context context = Context::cpu({.threads = threads, .memory_limit = least, .isa = isa});
      SCOPED_TRACE(fmt::format("{} {} threads, limit {}", isa, threads, least));
      EXPECT_NO_THROW(call(context));
      EXPECT_LE(context.memory_peak(), least);
      EXPECT_EQ(context.memory_used(), 0U);
    }
}

TEST(ProductQuantizerMemory, TightLimitsGiveTheSameBytesWithinTheLimit) {
  const Rows rows(support::generate(Kind::normal, 2000, 17, 40), ElementType::f32);
  const ProductQuantizerOptions options = {.parts = 4, .bits = 4, .iterations = 2, .training_rows = 800};
  const ProductQuantizer expected = ProductQuantizer::train(Context::cpu(), rows, options);
  const std::vector<std::uint8_t> codes = support::to_vector(expected.encode(Context::cpu(), rows));
  expect_runs_within_limit([&](const Context& context) {
    EXPECT_EQ(codewords_of(ProductQuantizer::train(context, rows, options)), codewords_of(expected));
  });
  expect_runs_within_limit(
      [&](const Context& context) { EXPECT_TRUE(support::same(codes, expected.encode(context, rows))); });
  expect_runs_within_limit(
      [&](const Context& context) { EXPECT_EQ(expected.tables(context, rows).rows(), 2000U); });
  expect_runs_within_limit([&](const Context& context) { EXPECT_GT(expected.error(context, rows), 0); });
  const Matrix<std::uint8_t> given = expected.encode(Context::cpu(), rows);
  expect_runs_within_limit(
      [&](const Context& context) { EXPECT_EQ(expected.decode(context, given).rows(), 2000U); });
}

TEST(ProductQuantizerCancelThreads, StopsWhereverItIs) {
  // So many that work is left when one of two threads cancels: nobody looks again in the last piece.
  const Rows rows(support::generate(Kind::normal, 20'000, 16, 41), ElementType::f32);
  const ProductQuantizer quantizer = support::untrained(Kind::normal, 16, 4, 8, 42);
  const Matrix<std::uint8_t> codes = quantizer.encode(Context::cpu(), rows);
  const std::vector<Call> calls = {
      [&](const Context& context) { ProductQuantizer::train(context, rows, {.parts = 4, .bits = 4}); },
      [&](const Context& context) { quantizer.encode(context, rows); },
      [&](const Context& context) { quantizer.decode(context, codes); },
      [&](const Context& context) { quantizer.tables(context, rows); },
      [&](const Context& context) { quantizer.error(context, rows); }};
  for (const Call& call : calls) {
    for (const int threads : {1, 2})
      for (const int when : {0, 1}) support::expect_cancelled_at_report(when, threads, "", call);
    const Context cancelled = Context::cpu();
    cancelled.cancel();
    const auto error = support::error_from([&] { call(cancelled); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::cancelled);
  }
}

TEST(ProductQuantizerProgressThreads, CountsUpToTheTotal) {
  const Rows rows(support::generate(Kind::normal, 3000, 16, 43), ElementType::f32);
  std::vector<Progress> reports;
  std::atomic<int> seconds = 0;
  const Context context =
      Context::cpu({.threads = 2,
                    .progress = [&](const Progress& progress) { reports.push_back(progress); },
                    .clock = [&] { return static_cast<double>(++seconds); }});
  const auto expect_reports = [&](const char* operation, std::uint64_t total) {
    ASSERT_GT(reports.size(), 1U);
    for (std::size_t i = 0; i < reports.size(); ++i) {
      EXPECT_STREQ(reports[i].operation, operation);
      EXPECT_EQ(reports[i].total, total);
      EXPECT_LE(reports[i].done, reports[i].total);
      EXPECT_TRUE(i == 0 || reports[i].done >= reports[i - 1].done);
    }
    EXPECT_EQ(reports.back().done, total);
    reports.clear();
  };
  const ProductQuantizer trained = ProductQuantizer::train(
      context, rows, {.parts = 4, .bits = 4, .iterations = 3, .training_rows = rows.rows()});
  expect_reports("ProductQuantizer::train", Stages::total);
  const Matrix<std::uint8_t> codes = trained.encode(context, rows);
  expect_reports("ProductQuantizer::encode", 3000);
  trained.decode(context, codes);
  expect_reports("ProductQuantizer::decode", 3000);
  trained.tables(context, rows);
  expect_reports("ProductQuantizer::tables", 3000);
  trained.error(context, rows);
  expect_reports("ProductQuantizer::error", 3000);
}

void expect_refused(const Call& call, const std::string& words) {
  const auto error = support::error_from([&] { call(Context::cpu()); });
  ASSERT_TRUE(error.has_value()) << words;
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
  EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
}

void expect_training_refused(RowsView rows, const ProductQuantizerOptions& options,
                             const std::string& words) {
  expect_refused([&](const Context& context) { ProductQuantizer::train(context, rows, options); }, words);
}

TEST(ProductQuantizerErrors, TrainingThatMakesNoSense) {
  const Rows rows(support::generate(Kind::normal, 50, 6, 44), ElementType::f32);
  expect_training_refused(rows, {.parts = 7, .bits = 4}, "1 to 6 parts, as rows have 6 elements, got 7");
  expect_training_refused(rows, {.bits = 5}, "bits must be 4 or 8, got 5");
  expect_training_refused(rows, {.bits = 0}, "bits must be 4 or 8, got 0");
  expect_training_refused(rows, {.bits = 64}, "bits must be 4 or 8, got 64");
  expect_training_refused(rows, {.bits = 8},
                          "256 codewords per part, which need at least as many rows, got 50");
  expect_training_refused(rows.view().slice(0, 15), {.bits = 4}, "16 codewords");
  expect_training_refused(rows, {.bits = 4, .iterations = 0}, "at least 1 iteration");
  expect_training_refused(Matrix<float>(50, 0), {.bits = 4}, "dimension");
}

TEST(ProductQuantizerErrors, CodebooksThatMakeNoSense) {
  std::vector<float> words(16 * 6, 1.0F);
  const auto expect_codebooks_refused = [&](std::size_t dim, std::size_t parts, unsigned bits,
                                            const std::string& text) {
    expect_refused([&](const Context&) { ProductQuantizer::from_codebooks(dim, parts, bits, words); }, text);
  };
  expect_codebooks_refused(0, 0, 4, "at least 1, got 0");
  expect_codebooks_refused(6, 0, 4, "1 to 6 parts");
  expect_codebooks_refused(6, 7, 4, "1 to 6 parts");
  expect_codebooks_refused(6, 2, 7, "4 or 8");
  expect_codebooks_refused(6, 2, 8, "1536 numbers are expected");
  expect_codebooks_refused(5, 2, 4, "80 numbers are expected");
  words[77] = std::numeric_limits<float>::infinity();
  expect_codebooks_refused(6, 2, 4, "number 77");
}

TEST(ProductQuantizerErrors, RowsAndCodesOfAnotherShape) {
  const ProductQuantizer quantizer = support::untrained(Kind::normal, 6, 3, 4, 45);
  const Rows wide(support::generate(Kind::normal, 50, 7, 46), ElementType::f32);
  const Rows rows(support::generate(Kind::normal, 50, 6, 46), ElementType::f32);
  const Matrix<std::uint8_t> codes(3, 3);
  expect_refused([&](const Context& context) { quantizer.encode(context, wide); },
                 "6 elements as in training, got 7");
  expect_refused([&](const Context& context) { quantizer.error(context, wide); }, "got 7");
  expect_refused([&](const Context& context) { quantizer.error(context, rows.view().slice(0, 0)); },
                 "at least 1 row");
  expect_refused([&](const Context& context) { quantizer.tables(context, wide); }, "got 7");
  expect_refused([&](const Context& context) { quantizer.decode(context, codes); }, "2 bytes, got 3");
  expect_refused([&](const Context&) { quantizer.codebook(3); }, "3 parts, got 3");
  for (const Metric metric : {Metric::euclidean, Metric::cosine})
    expect_refused([&](const Context& context) { quantizer.tables(context, rows, metric); },
                   name(metric).data());
}

// The lowest row is named, whatever the threads and tiles.
TEST(ProductQuantizerErrors, RowsThatAreNotFinite) {
  Rows rows(support::generate(Kind::normal, 70'000, 3, 47), ElementType::f32);
  const ProductQuantizer quantizer = support::untrained(Kind::normal, 3, 2, 4, 48);
  for (const std::size_t row : {69'999UL, 66'000UL, 8999UL}) {
    rows.put(row, 2, row == 66'000 ? std::numeric_limits<float>::infinity() : std::nanf(""));
    const std::string words = fmt::format(" row {} ", row);
    expect_training_refused(rows, {.bits = 4}, words);
    expect_refused([&](const Context& context) { quantizer.encode(context, rows); }, words);
    expect_refused([&](const Context& context) { quantizer.tables(context, rows); }, words);
    expect_refused([&](const Context& context) { quantizer.error(context, rows); }, words);
  }
}

}  // namespace
}  // namespace nearwise
