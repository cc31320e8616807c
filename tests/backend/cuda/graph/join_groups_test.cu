// Local joins on a CUDA device give the CPU's lists, bit for bit, in whatever order blocks run.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/cuda_test.h"
#include "support/change_cases.h"
#include "support/join_cases.h"

namespace nearwise {
namespace {

using support::describe;
using support::JoinCase;
using support::JoinShape;
using support::Kind;
using support::Rows;

void expect_cpu_lists(const Context& context, const JoinShape& shape) {
  const JoinCase made(shape);
  EXPECT_TRUE(
      support::same_lists(made.lists(Context::cpu({.threads = 1})), made.lists(context), shape.degree))
      << describe(shape);
  EXPECT_EQ(context.memory_used(), 0U);
}

// Shape `number` of a metric: every kind of data, every type, otherwise random. Few are large.
JoinShape generated_shape(Metric metric, std::uint64_t number) {
  constexpr std::array<std::size_t, 8> dims = {1, 2, 3, 8, 15, 17, 33, 50};
  const std::uint64_t seed = 1000 * static_cast<std::uint64_t>(metric) + number;
  const Random random = support::random_for(seed, support::Purpose::shapes);
  const auto below = [&](std::uint64_t draw, std::size_t bound) { return random.below(draw, bound); };
  const bool large = number == 7;
  const std::size_t degree = 1 + below(4, large || below(5, 4) != 0 ? 10 : 64);
  return {
      .kind = support::every_kind[number % support::every_kind.size()],
      .metric = metric,
      .type = number % 2 == 0 ? ElementType::f32 : support::every_type[below(0, support::every_type.size())],
      .layout = below(1, 3) == 0 ? support::Layout::unaligned : support::Layout::dense,
      .rows = 2 + below(2, large ? 100 : 24),
      .dim = dims[below(3, dims.size())],
      .degree = degree,
      .groups = large ? 1 : 1 + below(6, 2),
      .members = large ? 100UL : 1 + below(7, 20),
      .bipartite = below(10, 3) == 0,
      // Members of lists that are never full are inserted repeatedly.
      .rounds = large || degree > 10 ? 0 : below(8, 2),
      .sample = 1 + below(9, 4),
      .seed = seed};
}

class CudaJoinGroups : public gpu::CudaTest, public testing::WithParamInterface<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metrics, CudaJoinGroups, testing::ValuesIn(support::every_metric),
                         support::metric_name);

TEST_P(CudaJoinGroups, GeneratedShapes) {
  const Context context = Context::cuda(0);
  constexpr int cases = 50;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number)
    if (gpu::is_due(number)) expect_cpu_lists(context, generated_shape(GetParam(), number));
  RecordProperty("generated_cases", cases);
}

// With exactly the memory that the costs state.
TEST_P(CudaJoinGroups, LeastMemory) {
  const JoinShape shape = {.metric = GetParam(), .rows = 40, .dim = 11, .members = 30};
  const JoinCase made(shape);
  const JoinCosts costs = made.costs(Context::cuda(0));
  const std::uint64_t least =
      costs.fixed_bytes + shape.rows * costs.bytes_per_row + made.largest_group() * costs.bytes_per_member;
  const Context context = Context::cuda(0, {.memory_limit = least});
  EXPECT_TRUE(
      support::same_lists(made.lists(Context::cpu({.threads = 1})), made.lists(context), shape.degree));
  EXPECT_LE(context.memory_peak(), least);
  const Context little = Context::cuda(0, {.memory_limit = 1000});
  EXPECT_EQ(gpu::error_of([&] { made.lists(little); }).code(), ErrorCode::out_of_memory);
  EXPECT_EQ(little.memory_used(), 0U);
}

using CudaJoin = gpu::CudaTest;

// Lists longer than a warp, and so long that nothing is rejected.
TEST_F(CudaJoin, LongLists) {
  const Context context = Context::cuda(0);
  std::uint64_t number = 0;
  for (const std::size_t degree : {31UL, 32UL, 33UL, 64UL, 65UL})
    if (gpu::is_due(number++))
      expect_cpu_lists(context, {.kind = Kind::integers,
                                 .rows = 70,
                                 .dim = 3,
                                 .degree = degree,
                                 .groups = 1,
                                 .members = 70,
                                 .seed = degree});
}

// Neighbourhoods of several tiles, and hub rows.
TEST_F(CudaJoin, LargeSamples) {
  const Context context = Context::cuda(0);
  if (gpu::is_due(0))
    expect_cpu_lists(context, {.rows = 80,
                               .dim = 3,
                               .degree = 33,
                               .groups = 1,
                               .members = 80,
                               .rounds = 1,
                               .sample = 40,
                               .seed = 2});
  if (gpu::is_due(1))
    expect_cpu_lists(context, {.kind = Kind::overflowing,
                               .metric = Metric::inner_product,
                               .rows = 60,
                               .dim = 4,
                               .degree = 8,
                               .groups = 1,
                               .members = 60,
                               .rounds = 1,
                               .sample = 3,
                               .seed = 3});
}

TEST_F(CudaJoin, StopsWhenCancelled) {
  const JoinCase made({.rows = 30});
  Context context = Context::cuda(0);
  context.cancel();
  EXPECT_EQ(gpu::error_of([&] { made.lists(context); }).code(), ErrorCode::cancelled);
  EXPECT_EQ(context.memory_used(), 0U);
}

// End to end: partitions, NN-Descent, recall, result. Sizes suit the check build.
TEST_F(CudaJoin, BuildsTheGraphOfTheCpu) {
  const Rows rows(support::generate(Kind::exact_duplicates, 100, 6, 5), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(4);
  tuning.partition_rows = 20;
  tuning.overlap = 1;
  tuning.sample = 2;
  tuning.measured = 20;
  tuning.attempts = 1;
  tuning.rounds = 2;
  const KnnGraphOptions options = {.degree = 4, .target_recall = 0.999};
  const KnnGraph expected = graph::build(Context::cpu({.threads = 1}), rows, options, tuning);
  ASSERT_GE(expected.report.rounds.size(), 2U);
  const std::uint64_t least = graph::Builder::bytes(Context::cuda(0), rows, options, tuning);
  const Context context = Context::cuda(0, {.memory_limit = least});
  const KnnGraph given = graph::build(context, rows, options, tuning);
  given.validate();
  EXPECT_TRUE(support::same_bytes(expected.neighbors, given.neighbors));
  EXPECT_EQ(given.report.recall.value, expected.report.recall.value);
  EXPECT_EQ(given.report.method, GraphMethod::nn_descent);
  EXPECT_EQ(context.memory_used(), 0U);
  EXPECT_LE(context.memory_peak(), least);
}

// Lists that start with neighbours, and bipartite groups.
TEST_F(CudaJoin, MergesTheGraphsOfTheCpu) {
  const Rows rows(support::generate(Kind::normal, 40, 6, 6), ElementType::f32);
  const RowsView all = rows;
  const Context cpu = Context::cpu({.threads = 1});
  const KnnGraph left = build_knn_graph(cpu, all.slice(0, 16), {.degree = 3});
  const KnnGraph right = build_knn_graph(cpu, all.slice(16, 24), {.degree = 3});
  graph::Tuning tuning = support::by_partitions(3);
  tuning.partition_rows = 20;
  tuning.measured = 20;
  tuning.attempts = 1;
  tuning.rounds = 1;
  const KnnGraph expected = graph::merge(cpu, all, left, right, {.target_recall = 0.999}, tuning);
  ASSERT_EQ(expected.report.method, GraphMethod::nn_descent);
  const Context context = Context::cuda(0);
  const KnnGraph given = graph::merge(context, all, left, right, {.target_recall = 0.999}, tuning);
  EXPECT_TRUE(support::same_bytes(expected.neighbors, given.neighbors));
  EXPECT_EQ(context.memory_used(), 0U);
}

}  // namespace
}  // namespace nearwise
