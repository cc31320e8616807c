// Graph indexes with contexts of a CUDA device: the CPU's edges and answers, whichever device built them.
#include "nearwise/graph_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "nearwise/sharded.h"
#include "support/filter_cases.h"
#include "support/graph_cases.h"
#include "support/ivf_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using support::clustered;
using support::Problem;
using support::same_bytes;
using CudaGraphIndex = gpu::CudaTest;

const Context& cpu() { return support::one_thread(); }
Context cuda(ContextOptions options = {.seed = 5}) { return Context::cuda(0, options); }

bool same_edges(const GraphIndex& left, const GraphIndex& right) {
  const auto of = [](const GraphIndex& index) {
    const MatrixView<const std::int32_t> edges = index.edges();
    return std::vector<std::int32_t>(edges.data(), edges.data() + edges.rows() * edges.cols());
  };
  return of(left) == of(right);
}

// Sizes suit the check build.
TEST_F(CudaGraphIndex, BuildsAndSearchesThatOfTheCpu) {
  std::uint64_t number = 0;
  for (const Metric metric : support::every_metric) {
    if (!gpu::is_due(number++)) continue;
    const Problem problem = clustered(90, 4, 6, 51 + number);
    const GraphIndexOptions options = {.metric = metric, .degree = 16};
    const GraphCalibrationOptions calibration = {.target_recall = 0.9, .sample = 8};
    const Context context = cuda();
    {
      const GraphIndex expected = GraphIndex::build(cpu(), problem.base, options, calibration);
      const GraphIndex index = GraphIndex::build(context, problem.base, options, calibration);
      EXPECT_TRUE(same_edges(expected, index)) << name(metric);
      EXPECT_EQ(expected.calibration(), index.calibration()) << name(metric);
      const Neighbors answer = expected.search(cpu(), problem.queries, 5, {.beam = 7});
      // Each device searches the index that the other one built.
      for (const GraphIndex* const built : {&expected, &index})
        for (const Context& searching : {cpu(), context})
          EXPECT_TRUE(same_bytes(answer, built->search(searching, problem.queries, 5, {.beam = 7})))
              << name(metric);
    }
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

TEST_F(CudaGraphIndex, ChangesAreSearched) {
  const Problem problem = clustered(70, 3, 5, 61, ElementType::u8);
  const RowsView base = problem.base;
  const Context context = cuda();
  const auto changed = [&](const Context& changing) {
    GraphIndex index = GraphIndex::build(changing, base.slice(0, 50), {.degree = 16}, std::nullopt);
    std::vector<Neighbors> answers;
    const auto search = [&] {
      answers.push_back(index.search(changing, problem.queries, 5, {.beam = 9}));
      std::vector<Id> some;
      for (Id id = 0; id < 70; id += 3) some.push_back(id);
      answers.push_back(
          index.search(changing, problem.queries, 5, {.beam = 9, .filter = Filter::allow(some)}));
    };
    search();
    index.add(changing, base.slice(50, 10));
    search();
    index.add(changing, base.slice(60, 10));  // into spare memory
    search();
    index.remove(changing, std::vector<Id>{1, 55, 69});
    search();
    index.compact(changing);
    search();
    return answers;
  };
  const std::vector<Neighbors> expected = changed(cpu());
  const std::vector<Neighbors> found = changed(context);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bytes(expected[i], found[i])) << i;
  EXPECT_EQ(context.memory_used(), 0U);
}

// An index of the host is prepared for devices when they are first asked for.
TEST_F(CudaGraphIndex, ThreadsSearchOnSeveralDevices) {
  const Problem problem = clustered(60, 3, 4, 71);
  const GraphIndex index = GraphIndex::build(cpu(), problem.base, {.degree = 16}, std::nullopt);
  const Neighbors expected = index.search(cpu(), problem.queries, 4, {.beam = 8});
  std::vector<std::thread> threads;
  std::vector<std::uint8_t> right(3);
  for (std::size_t i = 0; i < right.size(); ++i)
    threads.emplace_back([&, i] {
      const Context context = i == 0 ? Context::cpu() : cuda();
      right[i] = same_bytes(expected, index.search(context, problem.queries, 4, {.beam = 8})) ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<std::uint8_t>(3, 1));
}

// What nearwise/searchable.h promises, compared with the CPU.
TEST_F(CudaGraphIndex, FiltersOfEveryKind) {
  constexpr std::size_t rows = 90;
  constexpr std::size_t query_count = 4;
  const Problem problem = clustered(rows, query_count, 5, 91);
  const Context context = cuda();
  const GraphIndex index = GraphIndex::build(cpu(), problem.base, {.degree = 16}, std::nullopt);
  std::uint64_t number = 0;
  for (const support::FilterKind kind : support::every_filter_kind)
    for (const double density : {0.1, 0.9}) {
      if (!gpu::is_due(number++)) continue;
      const support::FilterCase filter = make_filter(kind, rows, query_count, density, 92);
      for (const std::size_t k : {1UL, 6UL, rows + 5})
        EXPECT_TRUE(same_bytes(index.search(cpu(), problem.queries, k, {.filter = filter.filter}),
                               index.search(context, problem.queries, k, {.filter = filter.filter})))
            << name(kind) << ' ' << density << " k " << k;
    }
}

TEST_F(CudaGraphIndex, InPartsOfSeveralDevices) {
  const Problem problem = clustered(60, 3, 4, 93);
  const auto found_by = [&](const std::vector<Context>& contexts) {
    const Sharded<GraphIndex> index = shard_graph_index(contexts, problem.base, {.degree = 16}, std::nullopt);
    return index.search(contexts.front(), problem.queries, 5, {.beam = 6});
  };
  const Neighbors expected = found_by({cpu(), cpu()});
  EXPECT_TRUE(same_bytes(expected, found_by({cuda(), Context::cuda(gpu::device_count() - 1)})));
  EXPECT_TRUE(same_bytes(expected, found_by({cpu(), cuda()})));
}

// With the memory that the refusal of a smaller limit names.
TEST_F(CudaGraphIndex, LeastMemory) {
  const Problem problem = clustered(90, 4, 6, 81);
  const GraphIndexOptions options = {.degree = 16};
  const GraphCalibrationOptions calibration = {.target_recall = 0.9, .sample = 8};
  const auto build = [&](const Context& context) {
    return GraphIndex::build(context, problem.base, options, calibration);
  };
  const Context little = cuda({.memory_limit = 1, .seed = 5});
  const Error refused = gpu::error_of([&] { build(little); });
  EXPECT_EQ(refused.code(), ErrorCode::out_of_memory);
  const std::vector<std::uint64_t> sizes = support::sizes_in(refused.what());
  ASSERT_FALSE(sizes.empty()) << refused.what();
  const std::uint64_t least = *std::max_element(sizes.begin(), sizes.end());
  const Context context = cuda({.memory_limit = least, .seed = 5});
  EXPECT_TRUE(same_edges(build(cpu()), build(context)));
  EXPECT_LE(context.memory_peak(), least);
  EXPECT_EQ(context.memory_used(), 0U);
}

}  // namespace
}  // namespace nearwise
