// Sharded and Replicated over several contexts of the CPU: the answer of one index over all rows.
#include "nearwise/sharded.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "support/error_of.h"
#include "support/filter_cases.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::KnnCase;
using support::Problem;

std::vector<Context> some_contexts(std::size_t count) {
  std::vector<Context> contexts;
  for (std::size_t i = 0; i < count; ++i) contexts.push_back(Context::cpu({.threads = 1}));
  return contexts;
}

class ShardedExact : public testing::TestWithParam<Metric> {};

TEST_P(ShardedExact, IsTheWhole) {
  const Context context = Context::cpu({.threads = 2});
  for (const std::size_t rows : {1, 2, 7, 300})
    for (const std::size_t k : {std::size_t{1}, std::size_t{5}, rows, rows + 2}) {
      const KnnCase knn_case = {.recipe = {.kind = support::Kind::near_duplicates,
                                           .rows = rows,
                                           .queries = 1 + rows % 5,
                                           .dim = 6,
                                           .seed = rows + k},
                                .metric = GetParam(),
                                .k = k};
      SCOPED_TRACE(describe(knn_case));
      const Problem problem = support::make_problem(knn_case.recipe);
      const KnnOptions options = support::options_for(knn_case);
      if (k > rows && options.short_rows != ShortRows::pad) continue;
      const oracle::Answer expected =
          support::as_expected(knn(context, problem.queries, problem.base, k, options));
      for (const std::size_t devices : {1, 2, 3, 8}) {
        const std::vector<Context> contexts = some_contexts(devices);
        const ExactOptions exact = {.metric = GetParam()};
        EXPECT_TRUE(support::same(
            expected, shard_exact(contexts, problem.base, exact)
                          .search(context, problem.queries, k, {.short_rows = options.short_rows})));
        EXPECT_TRUE(support::same(
            expected, replicate_exact(contexts, problem.base, exact)
                          .search(context, problem.queries, k, {.short_rows = options.short_rows})));
        if (devices % 2 == 0) {
          EXPECT_TRUE(support::same(
              expected, shard_and_replicate_exact(contexts, 2, problem.base, exact)
                            .search(context, problem.queries, k, {.short_rows = options.short_rows})));
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Metrics, ShardedExact, testing::ValuesIn(support::every_metric),
                         support::metric_name);

class ShardedCalls : public testing::Test {
 protected:
  const Problem problem_ = support::make_problem({.rows = 40, .queries = 9, .dim = 5, .seed = 2});
  const Context context_ = Context::cpu({.threads = 1});
};

TEST_F(ShardedCalls, SizesAndMetrics) {
  const std::vector<Context> contexts = some_contexts(6);
  EXPECT_EQ(shard_exact(contexts, problem_.base, {.metric = Metric::cosine}).metric(), Metric::cosine);
  EXPECT_EQ(shard_exact(contexts, problem_.base).size(), 40U);
  EXPECT_EQ(replicate_exact(contexts, problem_.base).size(), 40U);
  EXPECT_EQ(shard_and_replicate_exact(contexts, 3, problem_.base).size(), 40U);
}

TEST_F(ShardedCalls, WrongArguments) {
  const std::vector<Context> contexts = some_contexts(3);
  EXPECT_STREQ(error_of([&] { shard_exact({}, problem_.base); }).what(),
               "Exact: at least one context is needed, got none");
  EXPECT_STREQ(error_of([&] { shard_and_replicate_exact(contexts, 2, problem_.base); }).what(),
               "Exact: the number of contexts must be a multiple of the shards, got 3 and 2");
  EXPECT_STREQ(error_of([&] { Sharded<Exact>({}); }).what(),
               "Sharded: at least one index is needed, got none");
  const RowsView base = problem_.base;
  const auto prepared = [&](std::size_t rows, Metric metric) {
    return Placed<Exact>{context_, Exact::prepare(context_, base.slice(0, rows), {.metric = metric})};
  };
  std::vector<Placed<Exact>> unequal;
  unequal.push_back(prepared(4, Metric::euclidean));
  unequal.push_back(prepared(5, Metric::euclidean));
  EXPECT_STREQ(error_of([&] { Replicated<Exact>(std::move(unequal)); }).what(),
               "Replicated: all indexes must hold the same rows, got 4 and 5");
  std::vector<Placed<Exact>> mixed;
  mixed.push_back(prepared(4, Metric::euclidean));
  mixed.push_back(prepared(4, Metric::cosine));
  EXPECT_STREQ(error_of([&] { Sharded<Exact>(std::move(mixed)); }).what(),
               "Sharded: all indexes must have the same metric, got euclidean and cosine");

  const auto sharded = shard_exact(contexts, problem_.base);
  const auto replicated = replicate_exact(contexts, problem_.base);
  const Problem other = support::make_problem({.rows = 1, .queries = 2, .dim = 4, .seed = 2});
  for (const auto& search : {std::function<void(RowsView, std::size_t)>([&](RowsView queries, std::size_t k) {
                               sharded.search(context_, queries, k);
                             }),
                             std::function<void(RowsView, std::size_t)>([&](RowsView queries, std::size_t k) {
                               replicated.search(context_, queries, k);
                             })}) {
    EXPECT_STREQ(error_of([&] { search(problem_.queries, 0); }).what(), "knn: k must be at least 1, got 0");
    EXPECT_STREQ(
        error_of([&] { search(problem_.queries, 41); }).what(),
        "knn: k must be at most the number of base rows, 40, got 41 (short_rows = pad fills up the rows)");
    EXPECT_STREQ(error_of([&] { search(other.queries, 1); }).what(),
                 "knn: queries and base must have the same dimension, got 4 and 5");
    const RowsView none = other.queries;
    EXPECT_STREQ(error_of([&] { search(none.slice(0, 0), 1); }).what(),
                 "knn: queries and base must have the same dimension, got 4 and 5");
  }
}

// As the whole says it, or from where it counts.
TEST_F(ShardedCalls, ABadRowIsNamedByItsNumber) {
  const std::vector<Context> contexts = some_contexts(3);
  support::Rows base(support::generate(support::Kind::normal, 40, 5, 1), ElementType::f32);
  support::Rows queries(support::generate(support::Kind::normal, 9, 5, 2), ElementType::f32);
  const auto replicated = replicate_exact(contexts, base);
  const auto message = [&] {
    return std::string(error_of([&] { replicated.search(context_, queries, 1); }).what());
  };
  for (const std::size_t row : {8, 7, 4}) queries.put(row, 1, std::numeric_limits<float>::quiet_NaN());
  // Copies have the queries from 0, 3 and 6 on: the lowest that fails is reported.
  EXPECT_NE(message().find("row 1 "), std::string::npos) << message();
  EXPECT_NE(message().find("(counted from query 3)"), std::string::npos) << message();
  queries.put(2, 1, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(message(), error_of([&] { knn(context_, queries, base, 1); }).what());
  base.put(31, 2, std::numeric_limits<float>::infinity());
  const std::string of_base = error_of([&] { Exact::prepare(context_, base); }).what();
  EXPECT_NE(of_base.find("31"), std::string::npos) << of_base;
  EXPECT_EQ(error_of([&] { shard_exact(contexts, base); }).what(), of_base);
}

TEST_F(ShardedCalls, TheMemberThatFailsIsNamed) {
  std::vector<Context> contexts = some_contexts(3);
  auto sharded = [&] {
    std::vector<Placed<Exact>> parts;
    for (std::size_t i = 0; i < 3; ++i)
      parts.push_back({i == 1 ? Context::cpu({.threads = 1, .memory_limit = 1}) : contexts[i],
                       Exact::prepare(contexts[i], problem_.base)});
    return Sharded<Exact>(std::move(parts));
  }();
  const Error error = error_of([&] { sharded.search(context_, problem_.queries, 2); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  EXPECT_NE(std::string(error.what()).find("(on cpu, number 2 of 3)"), std::string::npos) << error.what();
}

// The device that failed, not the context in which its part is joined.
TEST_F(ShardedCalls, ANestedMemberThatFailsIsNamedOnce) {
  std::vector<Placed<Replicated<Exact>>> parts;
  for (std::size_t part = 0; part < 2; ++part) {
    std::vector<Placed<Exact>> copies;
    for (std::size_t copy = 0; copy < 2; ++copy)
      copies.push_back({Context::cpu({.threads = 1, .memory_limit = part == 1 && copy == 1 ? 1U : 0U}),
                        Exact::prepare(context_, problem_.base)});
    parts.push_back({context_, Replicated<Exact>(std::move(copies))});
  }
  const Sharded<Replicated<Exact>> sharded(std::move(parts));
  const std::string message = error_of([&] { sharded.search(context_, problem_.queries, 2); }).what();
  EXPECT_TRUE(message.ends_with("(on cpu, number 2 of 2)")) << message;
  EXPECT_EQ(message.find("number"), message.rfind("number")) << message;
}

TEST_F(ShardedCalls, TheLimitOfTheCallCountsAllAnswers) {
  const std::vector<Context> contexts = some_contexts(3);
  const auto sharded = shard_exact(contexts, problem_.base);
  // Three answers and their join, 9 x 2 entries of 12 bytes.
  const Error refused = error_of(
      [&] { sharded.search(Context::cpu({.threads = 1, .memory_limit = 863}), problem_.queries, 2); });
  EXPECT_EQ(refused.code(), ErrorCode::out_of_memory);
  EXPECT_STREQ(refused.what(), "knn: the memory limit of 863 B is too small, 864 B would suffice");
  const Context enough = Context::cpu({.threads = 1, .memory_limit = 864});
  EXPECT_NO_THROW(sharded.search(enough, problem_.queries, 2));
  EXPECT_EQ(enough.memory_used(), 0U);
}

TEST_F(ShardedCalls, TheLimitOfTheCallCountsAllAnswersOfRanges) {
  const float infinity = std::numeric_limits<float>::infinity();
  // All 9 x 40 answers of 12 bytes, and their join.
  const auto expect_limit = [&](const auto& index) {
    const auto search = [&](std::uint64_t limit) {
      const Context context = Context::cpu({.threads = 1, .memory_limit = limit});
      EXPECT_EQ(index.range_search(context, problem_.queries, infinity).ids.size(), 360U);
      EXPECT_EQ(context.memory_used(), 0U);
    };
    EXPECT_EQ(error_of([&] { search(8639); }).code(), ErrorCode::out_of_memory);
    search(8640);
  };
  expect_limit(shard_exact(some_contexts(3), problem_.base));
  expect_limit(replicate_exact(some_contexts(3), problem_.base));
}

TEST_F(ShardedCalls, ReportsProgressOfARangeSearch) {
  std::vector<Progress> reports;
  const Context context = Context::cpu(
      {.threads = 1, .progress = [&](const Progress& progress) { reports.push_back(progress); }});
  replicate_exact(some_contexts(3), problem_.base).range_search(context, problem_.queries, 2);
  ASSERT_FALSE(reports.empty());
  EXPECT_STREQ(reports.back().operation, "range_search");
  EXPECT_EQ(reports.back().done, 9U);
  EXPECT_EQ(reports.back().total, 9U);
}

TEST_F(ShardedCalls, ReportsProgressOfAllParts) {
  std::vector<Progress> reports;
  const Context context = Context::cpu(
      {.threads = 1, .progress = [&](const Progress& progress) { reports.push_back(progress); }});
  shard_exact(some_contexts(3), problem_.base).search(context, problem_.queries, 2);
  ASSERT_FALSE(reports.empty());
  EXPECT_STREQ(reports.back().operation, "knn");
  EXPECT_EQ(reports.back().done, 40U);
  EXPECT_EQ(reports.back().total, 40U);
}

TEST_F(ShardedCalls, AFilterSpeaksOfTheWholeBase) {
  const support::Problem large = support::make_problem(
      {.kind = support::Kind::integers, .rows = 300, .queries = 21, .dim = 4, .seed = 77});
  for (const support::FilterKind kind : support::every_filter_kind)
    for (const double density : {0.0, 0.02, 0.6}) {
      const support::FilterCase filter = make_filter(kind, 300, 21, density, 78);
      const oracle::Answer expected =
          support::filtered_answer(large.queries, large.base, 6, Metric::sqeuclidean, filter.allows);
      const ExactSearchOptions options = {.filter = filter.filter};
      EXPECT_TRUE(support::same(
          expected, shard_exact(some_contexts(3), large.base).search(context_, large.queries, 6, options)));
      EXPECT_TRUE(support::same(
          expected,
          replicate_exact(some_contexts(3), large.base).search(context_, large.queries, 6, options)));
      EXPECT_TRUE(support::same(expected, shard_and_replicate_exact(some_contexts(4), 2, large.base)
                                              .search(context_, large.queries, 6, options)));
      const Ivf index = Ivf::build(context_, large.base, {.lists = 7}, std::nullopt);
      const IvfSearchOptions all = {.probes = 7, .filter = filter.filter};
      EXPECT_TRUE(support::same(expected,
                                shard_ivf(some_contexts(3), index).search(context_, large.queries, 6, all)));
      EXPECT_TRUE(support::same(
          expected, replicate_ivf(some_contexts(3), index).search(context_, large.queries, 6, all)));
      EXPECT_TRUE(support::same(
          expected,
          shard_and_replicate_ivf(some_contexts(4), 2, index).search(context_, large.queries, 6, all)));
    }
}

// An index that searches until it is cancelled, if there is anything to search.
class Endless {
 public:
  using SearchOptions = ExactSearchOptions;
  using RangeSearchOptions = ExactRangeOptions;

  explicit Endless(std::atomic<int>& started) : started_(&started) {}
  Neighbors search(const Context& context, RowsView queries, std::size_t, const ExactSearchOptions&) const {
    if (queries.rows() == 0) return {};
    ++*started_;
    while (!context.cancelled()) std::this_thread::yield();
    throw Error(ErrorCode::cancelled, "cancelled");
  }
  RangeNeighbors range_search(const Context& context, RowsView queries, float,
                              const ExactRangeOptions&) const {
    static_cast<void>(search(context, queries, 1, {}));
    return {};
  }
  std::size_t size() const { return 10; }
  Metric metric() const { return Metric::sqeuclidean; }

 private:
  std::atomic<int>* started_;
};

TEST_F(ShardedCalls, CancellingTheCallStopsAllThreads) {
  std::atomic<int> started = 0;
  std::vector<Placed<Endless>> parts;
  for (const Context& context : some_contexts(3)) parts.push_back({context, Endless(started)});
  const Sharded<Endless> sharded(std::move(parts));
  const Context context = context_.with_progress({});
  std::jthread canceller([&] {
    while (started < 3) std::this_thread::yield();
    context.cancel();
  });
  EXPECT_EQ(error_of([&] { sharded.search(context, problem_.queries, 1); }).code(), ErrorCode::cancelled);
  EXPECT_EQ(error_of([&] { sharded.search(context, problem_.queries, 1); }).code(), ErrorCode::cancelled);
}

TEST_F(ShardedCalls, CancellingARangeSearchStopsAllThreads) {
  std::atomic<int> started = 0;
  std::vector<Placed<Endless>> copies;
  for (const Context& context : some_contexts(3)) copies.push_back({context, Endless(started)});
  const Replicated<Endless> replicated(std::move(copies));
  const Context context = context_.with_progress({});
  std::jthread canceller([&] {
    while (started < 3) std::this_thread::yield();
    context.cancel();
  });
  EXPECT_EQ(error_of([&] { replicated.range_search(context, problem_.queries, 1); }).code(),
            ErrorCode::cancelled);
}

// Fails, once the others are at work.
class Failing {
 public:
  using SearchOptions = ExactSearchOptions;
  using RangeSearchOptions = ExactRangeOptions;

  Failing(std::atomic<int>& started, bool fails) : endless_(started), started_(&started), fails_(fails) {}
  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const ExactSearchOptions& options) const {
    if (!fails_) return endless_.search(context, queries, k, options);
    while (*started_ < 2) std::this_thread::yield();
    throw Error(ErrorCode::device, "exact search: it fell off the bus");
  }
  RangeNeighbors range_search(const Context& context, RowsView queries, float,
                              const ExactRangeOptions&) const {
    static_cast<void>(search(context, queries, 1, {}));
    return {};
  }
  std::size_t size() const { return 10; }
  Metric metric() const { return Metric::sqeuclidean; }

 private:
  Endless endless_;
  std::atomic<int>* started_;
  bool fails_;
};

TEST_F(ShardedCalls, TheFirstFailureStopsTheOtherThreads) {
  std::atomic<int> started = 0;
  std::vector<Placed<Failing>> copies;
  for (int i = 0; i < 3; ++i) copies.push_back({context_, Failing(started, i == 2)});
  const Replicated<Failing> replicated(std::move(copies));
  const Error error = error_of([&] { replicated.search(context_, problem_.queries, 1); });
  EXPECT_EQ(error.code(), ErrorCode::device);
  EXPECT_STREQ(error.what(), "exact search: it fell off the bus (on cpu, number 3 of 3)");
}

}  // namespace
}  // namespace nearwise
