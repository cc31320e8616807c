// Graphs under limits: threads, instruction sets, memory, cancellation, and arguments that are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/cancelling.h"
#include "support/error_of.h"
#include "support/graph_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Kind;
using support::Rows;
using support::same_bytes;

// Would catch: a list that keeps what came first, a draw that depends on who links first.
TEST(BuildGraphThreads, AnyNumberOfThreadsGivesTheSameBytes) {
  const Rows rows(support::generate(Kind::exact_duplicates, 700, 8, 11), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(6);
  tuning.overlap = 2;
  tuning.sample = 6;  // fewer than there are: some are drawn
  const KnnGraphOptions options = {.degree = 6, .target_recall = 0.97};
  for (const std::uint64_t seed : {0U, 7U}) {
    const KnnGraph expected = graph::build(Context::cpu({.threads = 1, .seed = seed}), rows, options, tuning);
    ASSERT_GE(expected.report.rounds.size(), 2U) << "no descent was tested";
    for (const int threads : {2, 3, 8}) {
      const KnnGraph given =
          graph::build(Context::cpu({.threads = threads, .seed = seed}), rows, options, tuning);
      EXPECT_TRUE(same_bytes(given.neighbors, expected.neighbors)) << threads << " threads, seed " << seed;
      EXPECT_EQ(given.report.rounds.size(), expected.report.rounds.size());
    }
  }
}

TEST(BuildGraphSets, EveryInstructionSetGivesTheSameBytes) {
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine})
    for (const ElementType type : {ElementType::f32, ElementType::u8}) {
      const Rows rows(support::generate(Kind::exact_duplicates, 900, 20, 12), type);
      const KnnGraphOptions options = {.degree = 8, .metric = metric, .target_recall = 0.9};
      const auto& contexts = support::every_instruction_set();
      const KnnGraph expected = graph::build(contexts.front(), rows, options, support::small_partitions(8));
      for (const Context& context : contexts)
        EXPECT_TRUE(same_bytes(graph::build(context, rows, options, support::small_partitions(8)).neighbors,
                               expected.neighbors))
            << context.isa() << " " << name(metric) << " " << name(type);
    }
}

TEST(BuildGraphSeeds, AnotherSeedGivesAnotherGraph) {
  const Rows rows(support::generate(Kind::normal, 1500, 20, 13), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(8);
  tuning.overlap = 1;
  tuning.attempts = 1;
  const auto build = [&](std::uint64_t seed) {
    return graph::build(Context::cpu({.threads = 1, .seed = seed}), rows,
                        {.degree = 8, .target_recall = 0.99}, tuning);
  };
  EXPECT_FALSE(same_bytes(build(1).neighbors, build(2).neighbors));
}

TEST(BuildGraphMemory, TheLimitThatIsNamedIsEnoughAndIsKept) {
  for (const ElementType type : {ElementType::f32, ElementType::u8})
    for (const int threads : {1, 3}) {
      const Rows rows(support::generate(Kind::normal, 3000, 24, 14), type);
      const auto build = [&](const Context& context) {
        return graph::build(context, rows, {.degree = 10, .target_recall = 0.9},
                            support::small_partitions(10));
      };
      const Context poor = Context::cpu({.threads = threads, .memory_limit = 1});
      const Error error = error_of([&] { build(poor); });
      ASSERT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
      EXPECT_EQ(poor.memory_used(), 0U);
      const std::uint64_t limit = std::ranges::max(support::sizes_in(error.what()));
      const Context enough = Context::cpu({.threads = threads, .memory_limit = limit});
      const KnnGraph given = build(enough);
      EXPECT_LE(enough.memory_peak(), limit);
      EXPECT_EQ(enough.memory_used(), 0U);
      EXPECT_TRUE(same_bytes(given.neighbors, build(Context::cpu({.threads = threads})).neighbors));
    }
}

TEST(BuildGraphCancelThreads, StopsWhereverItIsAndGivesItsMemoryBack) {
  const Rows rows(support::generate(Kind::normal, 1500, 8, 15), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(8);
  tuning.overlap = 1;
  for (const int when : {0, 3, 12})
    support::expect_cancelled_at_report(when, 2, "", [&](const Context& context) {
      graph::build(context, rows, {.degree = 8, .target_recall = 0.999}, tuning);
    });
  const Context cancelled = Context::cpu({.threads = 1});
  cancelled.cancel();
  EXPECT_EQ(error_of([&] { build_knn_graph(cancelled, rows); }).code(), ErrorCode::cancelled);
}

TEST(BuildGraphErrors, SayWhatWasExpectedAndGiven) {
  const Context context = Context::cpu({.threads = 1});
  const Rows rows(support::generate(Kind::normal, 40, 4, 16), ElementType::f32);
  const auto message = [&](const KnnGraphOptions& options) {
    const Error error = error_of([&] { build_knn_graph(context, rows, options); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return std::string(error.what());
  };
  EXPECT_EQ(message({.degree = 0}), "build_knn_graph: degree must be at least 1, got 0");
  EXPECT_EQ(message({.target_recall = 0}),
            "build_knn_graph: target_recall must be above 0 and at most 1, got 0");
  EXPECT_EQ(message({.target_recall = 1.5}),
            "build_knn_graph: target_recall must be above 0 and at most 1, got 1.5");
  EXPECT_NE(message({.target_recall = std::nan("")}).find("got nan"), std::string::npos);
  Rows bad(support::generate(Kind::normal, 40, 4, 16), ElementType::f32);
  bad.put(31, 2, std::numeric_limits<float>::infinity());
  const Error error = error_of([&] { build_knn_graph(context, bad); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error.what()).find("31"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace nearwise
