// Graph indexes of the CPU, searched with contexts of a CUDA device: the CPU's answers.
#include "nearwise/graph_index.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "support/filter_cases.h"
#include "support/graph_cases.h"
#include "support/ivf_cases.h"

namespace nearwise {
namespace {

using support::clustered;
using support::Problem;
using support::same_bytes;
using CudaGraphIndex = gpu::CudaTest;

const Context& cpu() { return support::one_thread(); }
Context cuda(ContextOptions options = {.seed = 5}) { return Context::cuda(0, options); }

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

}  // namespace
}  // namespace nearwise
