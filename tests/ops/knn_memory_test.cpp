// Exact search under a memory limit: the same bytes in less memory, and an honest refusal below that.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "support/knn_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::same;

constexpr std::size_t k = 20;

std::uint64_t needed(RowsView queries, RowsView base, Metric metric, int threads, const std::string& isa) {
  return support::min_memory(queries, base, k, metric, threads, isa);
}

class KnnMemory : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, KnnMemory, testing::ValuesIn(support::every_metric), support::metric_name);

// Would catch: a tile's ids without its offset, a running best-k that is reset between tiles, working memory
// that is not counted, and an error message that promises too little.
TEST_P(KnnMemory, TightLimitsGiveTheSameBytesWithinTheLimit) {
  const support::Problem problem = support::make_problem(
      {.kind = Kind::exact_duplicates, .rows = 5000, .queries = 120, .dim = 24, .seed = 90});
  const oracle::Answer expected = oracle::knn(problem.queries, problem.base, k, GetParam());
  for (const std::string& isa : instruction_sets())
    for (const int threads : {1, 3}) {
      const std::uint64_t least = needed(problem.queries, problem.base, GetParam(), threads, isa);
      for (const std::uint64_t limit : {least, least + least / 4, 4 * least}) {
        SCOPED_TRACE(fmt::format("{}, {} threads, limit {} of least {}", isa, threads, limit, least));
        const Context context = Context::cpu({.threads = threads, .memory_limit = limit, .isa = isa});
        EXPECT_NO_THROW(EXPECT_TRUE(
            same(expected, knn(context, problem.queries, problem.base, k, {.metric = GetParam()}))));
        EXPECT_LE(context.memory_peak(), limit);
        EXPECT_GT(context.memory_peak(), 0U);
        EXPECT_EQ(context.memory_used(), 0U);
      }
    }
}

// Small tiles of difficult data: lengths and scales differ from tile to tile. Would catch: a bound of one
// tile used for candidates of another, and thresholds that mean nothing after a tile of huge values.
TEST_P(KnnMemory, TightLimitsOnDifficultData) {
  std::uint64_t seed = 95;
  for (const Kind kind : {Kind::mixed_ranges, Kind::largest, Kind::overflowing, Kind::tiny,
                          Kind::near_duplicates, Kind::offset_1e6, Kind::zero_rows}) {
    const support::Problem problem =
        support::make_problem({.kind = kind, .rows = 2100, .queries = 45, .dim = 11, .seed = ++seed});
    const oracle::Answer expected = oracle::knn(problem.queries, problem.base, k, GetParam());
    for (const std::string& isa : instruction_sets()) {
      const std::uint64_t least = needed(problem.queries, problem.base, GetParam(), 1, isa);
      for (const std::uint64_t limit : {least, 2 * least}) {
        SCOPED_TRACE(fmt::format("{} {}, limit {} of least {}", name(kind), isa, limit, least));
        const Context context = Context::cpu({.threads = 1, .memory_limit = limit, .isa = isa});
        EXPECT_NO_THROW(EXPECT_TRUE(
            same(expected, knn(context, problem.queries, problem.base, k, {.metric = GetParam()}))));
        EXPECT_LE(context.memory_peak(), limit);
      }
    }
  }
}

// Would catch: an allocation that is not counted (the peak without a limit is then below what the answer
// alone takes), or a limit that is not compared.
TEST_P(KnnMemory, TheAnswerIsCounted) {
  const Rows rows(support::generate(Kind::normal, 2000, 4, 91), ElementType::f32);
  const std::uint64_t answer_bytes = 2000 * 500 * (sizeof(Id) + sizeof(float));
  const Context unlimited = Context::cpu({.threads = 1});
  knn(unlimited, rows, rows, 500, {.metric = GetParam()});
  EXPECT_GE(unlimited.memory_peak(), answer_bytes);
  const Context limited = Context::cpu({.threads = 1, .memory_limit = answer_bytes - 1});
  try {
    knn(limited, rows, rows, 500, {.metric = GetParam()});
    FAIL() << "the answer alone exceeds the limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
  }
}

// The base may be a file larger than memory: what is needed must not grow with it. Likewise only the answer
// grows with the queries. Would catch: preparing the whole base, or all queries, at once.
TEST_P(KnnMemory, WhatIsNeededDoesNotGrowWithTheBase) {
  const Rows base(support::generate(Kind::uniform, 100'000, 16, 92), ElementType::u8);
  const RowsView few = base.view().slice(0, 50);
  const RowsView many = base.view().slice(0, 50'000);
  for (const std::string& isa : instruction_sets()) {
    SCOPED_TRACE(isa);
    const std::uint64_t small = needed(few, base.view().slice(0, 10'000), GetParam(), 1, isa);
    EXPECT_LE(needed(few, base, GetParam(), 1, isa), 2 * small);
    const std::uint64_t answer_growth = (many.rows() - few.rows()) * k * (sizeof(Id) + sizeof(float));
    EXPECT_LE(needed(many, base, GetParam(), 1, isa), 4 * small + 2 * answer_growth);
  }
}

// A context whose budget is spent by nobody is as good as new. Would catch: a leak that the second call
// meets.
TEST(KnnMemoryBudget, ALimitHoldsForEveryCallAnew) {
  const support::Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 3000, .queries = 100, .dim = 16, .seed = 93});
  const std::uint64_t least = needed(problem.queries, problem.base, Metric::sqeuclidean, 2, "");
  const oracle::Answer expected = oracle::knn(problem.queries, problem.base, k, Metric::sqeuclidean);
  const Context context = Context::cpu({.threads = 2, .memory_limit = least});
  for (int repeat = 0; repeat < 5; ++repeat)
    EXPECT_TRUE(same(expected, knn(context, problem.queries, problem.base, k)));
  EXPECT_LE(context.memory_peak(), least);
}

}  // namespace
}  // namespace nearwise
