// What selection refuses, the memory it takes, and how soon it stops.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "nearwise/error.h"
#include "nearwise/select_k.h"
#include "support/memory_limits.h"
#include "support/select_cases.h"
#include "support/timing.h"

namespace nearwise {
namespace {

using support::column_number;
using support::RowKind;
using support::same;
using support::ValueRows;

template <typename Work>
void expect_refused(const Work& work, ErrorCode code, const std::string& words) {
  try {
    work();
    ADD_FAILURE() << "not refused: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with("select_k: ")) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(SelectKErrors, WrongArguments) {
  const Context context = Context::cpu({.threads = 1});
  const ValueRows values(RowKind::uniform, 4, 10, 1);
  constexpr auto invalid = ErrorCode::invalid_argument;
  expect_refused([&] { select_k(context, values, 0); }, invalid, "k must be at least 1, got 0");
  expect_refused([&] { select_k(context, values, 11); }, invalid, "the number of columns, 10, got 11");
  const float* const data = values.view().data();
  expect_refused([&] { select_k(context, MatrixView<const float>(data, 4, 5, 4), 2); }, invalid,
                 "a row has 5 elements and the next begins after 4");
  const MatrixView<const float> on_device(data, 4, 5, 5, {DeviceKind::cuda, 0});
  expect_refused([&] { select_k(context, on_device, 2); }, invalid, "cuda:0");
  const Id ids[40] = {};
  for (const MatrixView<const Id>& view :
       {MatrixView<const Id>(ids, 4, 9), MatrixView<const Id>(ids, 2, 10), MatrixView<const Id>(ids, 0, 10)})
    expect_refused([&] { select_k(context, values, view, 2); }, invalid, "the shape of the values, [4, 10]");
  expect_refused([&] { select_k(context, values, MatrixView<const Id>(ids, 4, 10, 9), 2); }, invalid,
                 "rows of ids must not overlap");
  expect_refused(
      [&] {
        select_k(context, values, std::numeric_limits<std::size_t>::max(), {.short_rows = ShortRows::pad});
      },
      invalid, "does not fit");
}

// The limit that a refusal names is enough, to the byte; below it nothing is done.
TEST(SelectKMemory, TightLimitsGiveTheSameBytes) {
  struct Shape {
    std::size_t rows, columns, k;
  };
  for (const Shape& shape : {Shape{9, 5000, 50}, Shape{1, 200'000, 900}, Shape{3, 3000, 3000}}) {
    const std::size_t rows = shape.rows;
    const std::size_t k = shape.k;
    const ValueRows values(RowKind::anything, rows, shape.columns, 2);
    const auto expected = oracle::select_k(values, k, Order::smallest, column_number);
    for (const int threads : {1, 3}) {
      std::uint64_t least = 0;
      try {
        select_k(Context::cpu({.threads = threads, .memory_limit = 1}), values, k);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
        least = support::sizes_in(error.what()).back();
      }
      ASSERT_GE(least, rows * k * 12);
      for (const std::uint64_t limit : {least, least + least / 2, 10 * least}) {
        SCOPED_TRACE(fmt::format("{} rows, {} threads, limit {} of least {}", rows, threads, limit, least));
        const Context context = Context::cpu({.threads = threads, .memory_limit = limit});
        EXPECT_TRUE(same(expected, select_k(context, values, k)));
        EXPECT_LE(context.memory_peak(), limit);
        EXPECT_GE(context.memory_peak(), rows * k * 12);
        EXPECT_EQ(context.memory_used(), 0U);
      }
      // The limit named is rounded up.
      const Context too_small = Context::cpu({.threads = threads, .memory_limit = least - least / 50});
      expect_refused([&] { select_k(too_small, values, k); }, ErrorCode::out_of_memory, "would suffice");
      EXPECT_EQ(too_small.memory_used(), 0U);
    }
  }
}

// Working memory belongs to k and the threads, not to the rows.
TEST(SelectKMemory, DoesNotGrowWithTheRows) {
  const Context context = Context::cpu({.threads = 1});
  select_k(context, ValueRows(RowKind::uniform, 1, 400'000, 3), 10);
  EXPECT_LT(context.memory_peak(), 200'000U);
}

// Processor time of this process from cancel() to the exception; nothing if all was done before.
std::optional<double> latency(const Context& context, MatrixView<const float> values, std::size_t k,
                              std::chrono::milliseconds delay) {
  std::atomic<double> asked = 0;
  std::thread canceller([&] {
    std::this_thread::sleep_for(delay);
    asked = support::processor_seconds();
    context.cancel();
  });
  std::optional<double> seconds;
  try {
    // A handle stays cancelled: the first call after it was stops at the latest.
    for (int repeat = 0; repeat < 1000; ++repeat) select_k(context, values, k);
  } catch (const Error& error) {
    seconds = support::processor_seconds() - asked;
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  canceller.join();
  return seconds;
}

// In rows whose every value passes the thresholds before it, at the best and the slowest instruction set: a
// scan, its tightening, a sort in runs and their merge. Promised are 100 ms; twice that per thread is
// allowed.
TEST(SelectKCancelThreads, StopsSoon) {
  const ValueRows values(RowKind::descending, 1, 3'000'000, 4);
  const double allowed = 0.2 * 2 * support::sanitizer_slowdown();
  for (const std::string& isa : {instruction_sets().front(), instruction_sets().back()})
    for (const std::size_t k : {1000UL, 1'400'000UL, 3'000'000UL}) {
      SCOPED_TRACE(fmt::format("{}, k {}", isa, k));
      const Context parent = Context::cpu({.threads = 2, .isa = isa});
      std::optional<double> best;
      for (int attempt = 0; attempt < 4 && !(best && *best < allowed); ++attempt) {
        const auto seconds =
            latency(parent.with_progress({}), values, k, std::chrono::milliseconds(3 + 10 * attempt));
        if (seconds && (!best || *seconds < *best)) best = seconds;
      }
      ASSERT_TRUE(best.has_value());
      EXPECT_LT(*best, allowed);
      EXPECT_EQ(parent.memory_used(), 0U);
    }
}

TEST(SelectKProgressThreads, EndsAtTheTotal) {
  const ValueRows values(RowKind::uniform, 50, 2000, 5);
  const ValueRows long_row(RowKind::uniform, 1, 200'000, 6);
  for (const int threads : {1, 3})
    for (const MatrixView<const float>& view : {values.view(), long_row.view()}) {
      std::vector<std::uint64_t> done;
      std::atomic<int> seconds = 0;
      const Context context = Context::cpu({.threads = threads,
                                            .progress =
                                                [&](const Progress& progress) {
                                                  EXPECT_STREQ(progress.operation, "select_k");
                                                  EXPECT_EQ(progress.total, view.rows() * view.cols());
                                                  done.push_back(progress.done);
                                                },
                                            .clock = [&] { return static_cast<double>(++seconds); }});
      select_k(context, view, 5);
      ASSERT_GT(done.size(), 1U);
      EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
      EXPECT_EQ(done.back(), view.rows() * view.cols());
    }
}

}  // namespace
}  // namespace nearwise
