// Assignment keeps two scores per row where a search keeps lists: it must give the same answer.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "support/kmeans_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Problem;
using support::same;

class AssignMetrics : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, AssignMetrics, testing::ValuesIn(support::every_metric),
                         support::metric_name);

// Would catch: a row decided by scores that are too close, and a second score that was lost.
TEST_P(AssignMetrics, EveryKindOfData) {
  std::uint64_t seed = 4000;
  for (const Kind kind : support::every_kind)
    for (const std::size_t dim : {1UL, 19UL, 64UL}) {
      const Problem problem =
          support::make_problem({.kind = kind, .rows = 330, .queries = 150, .dim = dim, .seed = ++seed});
      const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 1, GetParam());
      for (const Context& context : support::every_instruction_set())
        EXPECT_TRUE(same(expected, assign(context, problem.queries, problem.base, {.metric = GetParam()})))
            << name(kind) << " " << dim << " " << context.isa();
    }
}

TEST_P(AssignMetrics, EveryPairOfTypes) {
  std::uint64_t seed = 4100;
  for (const ElementType rows : support::every_type)
    for (const ElementType centroids : support::every_type) {
      const Problem problem = support::make_problem({.kind = Kind::exact_duplicates,
                                                     .rows = 100,
                                                     .queries = 90,
                                                     .dim = 17,
                                                     .base_type = centroids,
                                                     .query_type = rows,
                                                     .base_layout = support::Layout::padded,
                                                     .query_layout = support::Layout::unaligned,
                                                     .seed = ++seed});
      const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 1, GetParam());
      for (const Context& context : support::every_instruction_set())
        EXPECT_TRUE(same(expected, assign(context, problem.queries, problem.base, {.metric = GetParam()})))
            << name(rows) << " to " << name(centroids) << " " << context.isa();
    }
}

// Panels that are not full, of rows and of centroids.
TEST_P(AssignMetrics, Tails) {
  std::uint64_t seed = 4200;
  for (const std::size_t rows : {1UL, 5UL, 6UL, 7UL, 31UL, 32UL, 33UL, 97UL})
    for (const std::size_t centroids : {1UL, 2UL, 3UL, 15UL, 16UL, 17UL, 31UL, 33UL, 63UL, 65UL, 129UL}) {
      const Problem problem = support::make_problem(
          {.kind = Kind::normal, .rows = centroids, .queries = rows, .dim = 9, .seed = ++seed});
      const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 1, GetParam());
      for (const Context& context : support::every_instruction_set())
        EXPECT_TRUE(same(expected, assign(context, problem.queries, problem.base, {.metric = GetParam()})))
            << rows << " to " << centroids << " " << context.isa();
    }
}

// Rows of few elements against few centroids have a kernel of their own: around the numbers at which it ends,
// and with centroids that fill no vector. Would catch: places behind the last centroid that are found, sums
// beyond f32.
TEST(AssignShort, EveryKindOfData) {
  std::uint64_t seed = 4250;
  for (const Kind kind : support::every_kind)
    for (const std::size_t dim : {2UL, 4UL, 7UL, 8UL})
      for (const std::size_t centroids : {3UL, 33UL, 256UL}) {
        const Problem problem = support::make_problem({.kind = kind,
                                                       .rows = centroids,
                                                       .queries = 140,
                                                       .dim = dim,
                                                       .base_layout = support::Layout::unaligned,
                                                       .query_layout = support::Layout::padded,
                                                       .seed = ++seed});
        const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 1, Metric::sqeuclidean);
        for (const Context& context : support::every_instruction_set())
          EXPECT_TRUE(same(expected, assign(context, problem.queries, problem.base)))
              << name(kind) << " " << dim << " " << centroids << " " << context.isa();
      }
}

TEST(AssignShort, TypesAndTails) {
  std::uint64_t seed = 4280;
  for (const ElementType type : support::every_type)
    for (const std::size_t centroids : {1UL, 15UL, 16UL, 17UL, 48UL, 255UL, 257UL})
      for (const std::size_t rows : {1UL, 3UL, 5UL, 129UL}) {
        const Problem problem = support::make_problem({.kind = Kind::integers,
                                                       .rows = centroids,
                                                       .queries = rows,
                                                       .dim = 3,
                                                       .query_type = type,
                                                       .seed = ++seed});
        const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 1, Metric::sqeuclidean);
        for (const Context& context : support::every_instruction_set())
          EXPECT_TRUE(same(expected, assign(context, problem.queries, problem.base)))
              << name(type) << " " << rows << " to " << centroids << " " << context.isa();
      }
}

TEST(AssignShortThreads, ManyRows) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 200, .queries = 5000, .dim = 4, .seed = 4290});
  const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 1, Metric::sqeuclidean);
  for (const int threads : {1, 2, 5})
    EXPECT_TRUE(same(expected, assign(Context::cpu({.threads = threads}), problem.queries, problem.base)));
}

// More centroids than a step of the scan takes, more rows than a task, several threads, and little memory.
TEST(AssignThreads, ManyRowsAndCentroids) {
  for (const auto& [rows, centroids] : {std::pair{9000UL, 300UL}, {200UL, 7000UL}}) {
    const Problem problem = support::make_problem(
        {.kind = Kind::uniform, .rows = centroids, .queries = rows, .dim = 128, .seed = 4300});
    const Neighbors found = knn(Context::cpu({.threads = 1}), problem.queries, problem.base, 1);
    const oracle::Answer expected = support::as_expected(found);
    for (const int threads : {1, 2, 5}) {
      EXPECT_TRUE(same(expected, assign(Context::cpu({.threads = threads}), problem.queries, problem.base)));
      for (const std::uint64_t limit : {3UL << 20, 8UL << 20}) {
        const Context context = Context::cpu({.threads = threads, .memory_limit = limit});
        EXPECT_TRUE(same(expected, assign(context, problem.queries, problem.base))) << limit;
        EXPECT_LE(context.memory_peak(), limit);
        EXPECT_EQ(context.memory_used(), 0U);
      }
    }
  }
}

}  // namespace
}  // namespace nearwise
