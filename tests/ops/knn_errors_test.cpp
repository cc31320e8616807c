// What exact search refuses, and how it says so.
#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::every_metric;
using support::Kind;
using support::Layout;
using support::Rows;
using support::Values;

std::optional<Error> error_of(const Context& context, RowsView queries, RowsView base, std::size_t k,
                              const KnnOptions& options = {}) {
  try {
    knn(context, queries, base, k, options);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// The refusal holds for every instruction set and metric.
void expect_refused(RowsView queries, RowsView base, std::size_t k,
                    ShortRows short_rows = ShortRows::refuse) {
  for (const Context& context : every_instruction_set())
    for (const Metric metric : every_metric) {
      const auto error = error_of(context, queries, base, k, {.metric = metric, .short_rows = short_rows});
      ASSERT_TRUE(error.has_value()) << "not refused: " << context.isa() << " " << name(metric);
      EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
      EXPECT_TRUE(std::string(error->what()).starts_with("knn: ")) << error->what();
    }
}

// As a whole word.
bool says(const std::string& message, const std::string& word) {
  const auto is_letter = [&](std::size_t place) {
    return place < message.size() &&
           (std::isalnum(static_cast<unsigned char>(message[place])) != 0 || message[place] == '_');
  };
  for (std::size_t place = message.find(word); place != std::string::npos;
       place = message.find(word, place + 1))
    if (!(place > 0 && is_letter(place - 1)) && !is_letter(place + word.size())) return true;
  return false;
}

TEST(KnnErrors, NoNeighboursAsked) {
  const Rows rows(support::generate(Kind::normal, 20, 5, 1), ElementType::f32);
  expect_refused(rows, rows, 0);
  expect_refused(rows, rows, 0, ShortRows::pad);
  expect_refused(rows.view().slice(0, 0), rows, 0);
}

TEST(KnnErrors, MoreNeighboursThanRows) {
  const Rows rows(support::generate(Kind::normal, 20, 5, 1), ElementType::f32);
  expect_refused(rows, rows, 21);
  expect_refused(rows, rows.view().slice(0, 0), 1);
  expect_refused(rows.view().slice(0, 0), rows, 21);
  expect_refused(rows, rows, std::numeric_limits<std::size_t>::max());
  // The message gives both numbers.
  const auto error = error_of(every_instruction_set().front(), rows, rows, 21);
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(says(error->what(), "21")) << error->what();
  EXPECT_TRUE(says(error->what(), "20")) << error->what();
}

TEST(KnnErrors, DifferentDimensions) {
  const Rows queries(support::generate(Kind::normal, 20, 17, 1), ElementType::f32);
  const Rows base(support::generate(Kind::normal, 20, 16, 1), ElementType::f32);
  expect_refused(queries, base, 3);
  expect_refused(queries.view().slice(0, 0), base, 3);
  const auto error = error_of(every_instruction_set().front(), queries, base, 3);
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(says(error->what(), "17")) << error->what();
  EXPECT_TRUE(says(error->what(), "16")) << error->what();
}

TEST(KnnErrors, NoDimensions) {
  expect_refused(Rows(Values(3, 0), ElementType::f32), Rows(Values(3, 0), ElementType::f32), 1);
  expect_refused(RowsView(), RowsView(), 1, ShortRows::pad);
}

// An answer that no machine can hold is an error, not a crash or a wrapped product.
TEST(KnnErrors, AnswerTooLargeForAnyMachine) {
  const Rows rows(support::generate(Kind::normal, 20, 5, 1), ElementType::f32);
  for (const std::size_t k :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 16,
        std::size_t{1} << 62, (std::size_t{1} << 62) + 1}) {
    const auto error =
        error_of(every_instruction_set().front(), rows, rows, k, {.short_rows = ShortRows::pad});
    ASSERT_TRUE(error.has_value()) << k;
    EXPECT_TRUE(error->code() == ErrorCode::out_of_memory || error->code() == ErrorCode::invalid_argument)
        << error->what();
  }
}

// A row longer than the stride would reach into the next one: surely a stride given in elements.
TEST(KnnErrors, OverlappingRows) {
  const Rows rows(support::generate(Kind::normal, 20, 5, 1), ElementType::f32);
  const RowsView overlapping(rows.view().data(), ElementType::f32, 5, 5, 5);
  expect_refused(overlapping, rows, 3);
  expect_refused(rows, overlapping, 3);
}

// The pointer must not be followed: it belongs to a device.
TEST(KnnErrors, MemoryOfADevice) {
  const Rows rows(support::generate(Kind::normal, 20, 5, 1), ElementType::f32);
  const RowsView on_device(reinterpret_cast<const void*>(std::uintptr_t{64}), ElementType::f32, 20, 5, 20,
                           {DeviceKind::cuda, 0});
  for (const Context& context : every_instruction_set())
    for (const auto& error : {error_of(context, on_device, rows, 3), error_of(context, rows, on_device, 3)}) {
      ASSERT_TRUE(error.has_value());
      EXPECT_TRUE(error->code() == ErrorCode::invalid_argument || error->code() == ErrorCode::unsupported)
          << error->what();
      EXPECT_TRUE(says(error->what(), "cuda")) << error->what();
    }
}

constexpr std::size_t bad_dim = 37;
constexpr std::size_t good_rows = 1300;

void put_bad_bits(Rows& rows, ElementType type, std::size_t row, std::size_t i, std::uint32_t bits) {
  if (type == ElementType::f32)
    rows.put(row, i, bits);
  else
    rows.put(row, i, static_cast<std::uint16_t>(bits));
}

struct BadValue {
  ElementType type;
  std::uint32_t bits;
};
// NaN with the first and with the last bit of its fraction, of both signs, and the infinities.
constexpr std::array bad_values = {
    BadValue{ElementType::f32, 0x7FC00000}, BadValue{ElementType::f32, 0x7F800001},
    BadValue{ElementType::f32, 0xFFFFFFFF}, BadValue{ElementType::f32, 0x7F800000},
    BadValue{ElementType::f32, 0xFF800000}, BadValue{ElementType::f16, 0x7E00},
    BadValue{ElementType::f16, 0x7C01},     BadValue{ElementType::f16, 0x7C00},
    BadValue{ElementType::f16, 0xFC00},     BadValue{ElementType::bf16, 0x7FC0},
    BadValue{ElementType::bf16, 0x7F81},    BadValue{ElementType::bf16, 0x7F80},
    BadValue{ElementType::bf16, 0xFF80}};

void expect_row_named(const std::optional<Error>& error, std::size_t row, const std::string& side) {
  ASSERT_TRUE(error.has_value()) << "not refused";
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
  EXPECT_TRUE(says(error->what(), std::to_string(row))) << "row " << row << ": " << error->what();
  EXPECT_TRUE(says(error->what(), side)) << error->what();
  EXPECT_FALSE(says(error->what(), side == "base" ? "query" : "base")) << error->what();
}

// Would catch: a check of the first block, the first lanes or the f32 type only, a check on a tile that
// reports the row within it, and a sum that turns infinity into "very far".
TEST(KnnErrors, NonFiniteValuesAreNamedByRow) {
  const Values good = support::generate(Kind::normal, good_rows, bad_dim, 2);
  for (const BadValue& bad : bad_values)
    for (const Layout layout : {Layout::dense, Layout::unaligned}) {
      const Rows other(support::slice(good, 0, support::few_and_many.back()), ElementType::f32);
      const Rows few_base(support::slice(good, 0, 25), ElementType::f32);
      Rows rows(good, bad.type, layout);
      for (const std::size_t row : {0UL, 513UL, 1299UL})
        for (const std::size_t i : {0UL, 15UL, 36UL}) {
          SCOPED_TRACE(
              fmt::format("{} {:#x} {} row {} element {}", name(bad.type), bad.bits, name(layout), row, i));
          put_bad_bits(rows, bad.type, row, i, bad.bits);
          for (const Context& context : every_instruction_set()) {
            SCOPED_TRACE(context.isa());
            for (const std::size_t queries : support::few_and_many)
              expect_row_named(error_of(context, other.view().slice(0, queries), rows, 3), row, "base");
            expect_row_named(error_of(context, rows, few_base, 3), row, "query");
          }
          rows.set(row, i, 0.5);
        }
      // Mended, the rows are accepted: gaps full of NaN are nobody's business.
      EXPECT_FALSE(error_of(every_instruction_set().front(), other, rows, 3).has_value());
      EXPECT_FALSE(error_of(every_instruction_set().front(), rows, few_base, 3).has_value());
    }
}

// A small batch has a way of its own, with a check of its own.
TEST(KnnErrors, NonFiniteValuesInASmallBatch) {
  const Rows base(support::generate(Kind::normal, 300, 21, 8), ElementType::f32);
  for (const BadValue& bad : bad_values)
    for (const std::size_t row : {0UL, 1UL, 2UL}) {
      Rows queries(support::generate(Kind::normal, 3, 21, 9), bad.type, Layout::unaligned);
      put_bad_bits(queries, bad.type, row, 20, bad.bits);
      SCOPED_TRACE(fmt::format("{} {:#x} row {}", name(bad.type), bad.bits, row));
      for (const Context& context : every_instruction_set())
        expect_row_named(error_of(context, queries, base, 3), row, "query");
    }
}

// Every metric checks, also where the value would not matter for the answer (cosine with a zero vector).
TEST(KnnErrors, NonFiniteValuesForEveryMetric) {
  Rows base(support::generate(Kind::zero_rows, 99, 8, 3), ElementType::f32);
  const Rows queries(Values(40, 8), ElementType::f32);
  base.put(71, 7, std::numeric_limits<float>::infinity());
  for (const Context& context : every_instruction_set())
    for (const Metric metric : every_metric)
      for (const std::size_t count : support::few_and_many)
        expect_row_named(error_of(context, queries.view().slice(0, count), base, 1, {.metric = metric}), 71,
                         "base");
}

// Several bad rows, several threads: always the lowest. Would catch: the error of the thread that came first.
TEST(KnnErrorsThreads, NonFiniteValuesWithSeveralThreads) {
  Rows base(support::generate(Kind::normal, 20'000, 16, 4), ElementType::f32);
  const Rows queries(support::generate(Kind::normal, 40, 16, 5), ElementType::f32);
  base.put(1234, 3, std::numeric_limits<float>::quiet_NaN());
  base.put(17654, 3, std::numeric_limits<float>::quiet_NaN());
  for (const int threads : {2, 4, 8})
    for (const std::size_t count : support::few_and_many)
      expect_row_named(error_of(Context::cpu({.threads = threads}), queries.view().slice(0, count), base, 3),
                       1234, "base");
}

// The largest finite values are not infinities.
TEST(KnnErrors, LargestFiniteValuesAreAccepted) {
  for (const auto& [type, bits] : {BadValue{ElementType::f32, 0x7F7FFFFF}, BadValue{ElementType::f16, 0x7BFF},
                                   BadValue{ElementType::bf16, 0x7F7F}}) {
    Rows rows(support::generate(Kind::normal, 50, 9, 6), type);
    for (std::size_t i = 0; i < 9; ++i) put_bad_bits(rows, type, 13, i, bits);
    for (const Metric metric : every_metric)
      support::expect_oracle_answer(rows, rows, 50, {.metric = metric});
  }
}

// A refused call leaves the context as it was. Would catch: memory that is not given back.
TEST(KnnErrors, AContextSurvivesARefusal) {
  Rows rows(support::generate(Kind::normal, 50, 9, 6), ElementType::f32);
  const Context context = Context::cpu({.threads = 2});
  const oracle::Answer expected = oracle::knn(rows, rows, 4, Metric::euclidean);
  Rows bad = rows;
  bad.put(49, 8, std::numeric_limits<float>::quiet_NaN());
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_TRUE(error_of(context, rows, bad, 4).has_value());
    EXPECT_EQ(context.memory_used(), 0U);
    EXPECT_TRUE(support::same(expected, knn(context, rows, rows, 4, {.metric = Metric::euclidean})));
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

}  // namespace
}  // namespace nearwise
