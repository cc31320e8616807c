// Exact search with several threads: the same bytes, one Context for many callers, progress.
//
// The suites of this file are named *Threads*: ThreadSanitizer runs them by that name.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::KnnCase;
using support::Problem;
using support::same;

// Would catch: an answer that depends on which thread saw a tile first (ties, thresholds), and races.
TEST(KnnThreads, AnyNumberOfThreadsGivesTheSameBytes) {
  std::uint64_t seed = 200;
  for (const Metric metric : support::every_metric)
    for (const Kind kind : {Kind::exact_duplicates, Kind::near_duplicates, Kind::identical}) {
      const Problem problem =
          support::make_problem({.kind = kind, .rows = 3001, .queries = 150, .dim = 12, .seed = ++seed});
      const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 40, metric);
      for (const int threads : {1, 2, 3, 4, 8}) {
        const Context context = Context::cpu({.threads = threads});
        ASSERT_EQ(context.threads(), threads);
        EXPECT_TRUE(same(expected, knn(context, problem.queries, problem.base, 40, {.metric = metric})))
            << threads << " threads, " << name(metric) << " " << name(kind);
      }
    }
}

// One query and many rows, many queries and few rows: the work is cut along one extent or the other.
TEST(KnnThreads, WorkCutAlongEitherExtent) {
  struct Shape {
    std::size_t rows, queries, k;
  };
  std::uint64_t seed = 300;
  for (const auto& [rows, queries, k] :
       {Shape{30'000, 1, 10}, Shape{30'000, 3, 300}, Shape{5, 4000, 5}, Shape{70, 2000, 1}})
    for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
      const Problem problem = support::make_problem(
          {.kind = Kind::integers, .rows = rows, .queries = queries, .dim = 6, .seed = ++seed});
      const oracle::Answer expected = oracle::knn(problem.queries, problem.base, k, metric);
      for (const int threads : {1, 2, 3, 4, 8})
        EXPECT_TRUE(same(expected, knn(Context::cpu({.threads = threads}), problem.queries, problem.base, k,
                                       {.metric = metric})))
            << threads << " threads, " << rows << " rows";
    }
}

// Would catch: working memory or counters kept in the Context instead of in the call.
TEST(KnnThreads, CallersShareOneContext) {
  const Context context = Context::cpu({.threads = 2});
  std::vector<KnnCase> cases;
  for (std::size_t i = 0; i < 8; ++i)
    cases.push_back({.recipe = {.kind = Kind::exact_duplicates,
                                .rows = 700 + 100 * i,
                                .queries = 40 + i,
                                .dim = 5 + i,
                                .base_type = support::every_type[i % 5],
                                .seed = 400 + i},
                     .metric = support::every_metric[i % 4],
                     .k = 5 + 3 * i});
  std::vector<std::string> failures(cases.size());  // assertions belong to the main thread
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < cases.size(); ++i)
    callers.emplace_back([&, i] {
      const Problem problem = support::make_problem(cases[i].recipe);
      const oracle::Answer expected = oracle::knn(problem.queries, problem.base, cases[i].k, cases[i].metric);
      for (int repeat = 0; repeat < 5; ++repeat) {
        const auto result = same(
            expected, knn(context, problem.queries, problem.base, cases[i].k, {.metric = cases[i].metric}));
        if (!result) failures[i] = result.message();
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(failures[i], "") << describe(cases[i]);
  EXPECT_EQ(context.memory_used(), 0U);
}

// Reports of one call, and whether two of them ever ran at once.
class Reports {
 public:
  ProgressCallback callback() {
    return [this](const Progress& progress) {
      overlapped_ = overlapped_ || inside_.exchange(true);
      done.push_back(progress.done);
      total.push_back(progress.total);
      operation = progress.operation;
      inside_ = false;
    };
  }
  void expect_sound() const {
    ASSERT_FALSE(done.empty());
    EXPECT_FALSE(overlapped_);
    for (std::size_t i = 0; i < done.size(); ++i) {
      ASSERT_EQ(total[i], total[0]);
      ASSERT_LE(done[i], total[i]);
      ASSERT_TRUE(i == 0 || done[i] >= done[i - 1]) << done[i - 1] << " then " << done[i];
    }
    EXPECT_EQ(done.back(), total.back());
    EXPECT_GT(total.back(), 0U);
    EXPECT_EQ(operation, "knn");
  }

  std::vector<std::uint64_t> done;
  std::vector<std::uint64_t> total;
  std::string operation;

 private:
  std::atomic<bool> inside_ = false;
  std::atomic<bool> overlapped_ = false;
};

class KnnProgressThreads : public testing::Test {
 protected:
  Problem problem_ =
      support::make_problem({.kind = Kind::normal, .rows = 40'000, .queries = 300, .dim = 8, .seed = 500});
};

// A clock that leaps between any two readings makes every unit of work report, so that disorder shows.
TEST_F(KnnProgressThreads, IsMonotoneAndEndsAtTheTotal) {
  for (const int threads : {1, 2, 4, 8})
    for (int repeat = 0; repeat < 10; ++repeat) {
      SCOPED_TRACE(threads);
      Reports reports;
      std::atomic<int> seconds = 0;
      const Context context = Context::cpu({.threads = threads, .progress = reports.callback(), .clock = [&] {
                                              return static_cast<double>(++seconds);
                                            }});
      knn(context, problem_.queries, problem_.base, 10);
      reports.expect_sound();
      EXPECT_GT(reports.done.size(), 1U) << "only the last report was made";
    }
}

// A clock that stands still allows the last report only. Would catch: a report per unit of work.
TEST_F(KnnProgressThreads, IsRare) {
  Reports reports;
  const Context context =
      Context::cpu({.threads = 4, .progress = reports.callback(), .clock = [] { return 1.0; }});
  knn(context, problem_.queries, problem_.base, 10);
  reports.expect_sound();
  EXPECT_EQ(reports.done.size(), 1U);
}

// Would catch: a handle that keeps its parent's callback, or a limit that is not shared.
TEST_F(KnnProgressThreads, EachHandleHasItsOwn) {
  Reports of_parent;
  Reports of_child;
  const Context parent = Context::cpu({.threads = 2, .progress = of_parent.callback()});
  knn(parent.with_progress(of_child.callback()), problem_.queries, problem_.base, 10);
  EXPECT_TRUE(of_parent.done.empty());
  of_child.expect_sound();
  EXPECT_GT(parent.memory_peak(), 0U);
}

}  // namespace
}  // namespace nearwise
