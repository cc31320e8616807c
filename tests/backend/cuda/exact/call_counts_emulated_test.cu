// What searches ask of CUDA: nothing is made twice, few waits and launches, and the same whatever the number
// of CPU threads.
#include "cuda_emulation/call_counts.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/device/device_buffer.h"
#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using cuda_emulation::CallCounts;
using CudaCallCounts = gpu::CudaTest;

template <typename Run>
CallCounts counts_of(const Run& run) {
  cuda_emulation::reset_call_counts();
  run();
  return cuda_emulation::call_counts();
}

// More rows than a tile of many queries has, in more blocks than one if threads decided.
TEST_F(CudaCallCounts, ASecondSearchOfOneQueryMakesNothing) {
  const support::Problem problem =
      support::make_problem({.rows = 70'000, .queries = 1, .dim = 16, .seed = 7});
  std::vector<std::map<std::string, std::uint64_t>> calls;
  for (const int threads : {1, 64}) {
    const Context context = Context::cuda(0, {.threads = threads});
    const Exact index = Exact::prepare(context, problem.base);
    const auto search = [&] { index.search(context, problem.queries, 10); };
    search();
    const CallCounts counts = counts_of(search);
    EXPECT_EQ(counts.stream_creations(), 0U);
    EXPECT_EQ(counts.handle_creations(), 0U);
    EXPECT_EQ(counts.pinned_allocations(), 0U);
    EXPECT_EQ(counts.of("cudaEventCreateWithFlags"), 0U);
    EXPECT_EQ(counts.pool_growths, 0U);
    EXPECT_EQ(counts.of("cublasSetWorkspace"), counts.of("cublasSetStream")) << "a workspace of the budget";
    EXPECT_LE(counts.synchronisations, 4U);
    EXPECT_LE(counts.launches(), 12U);
    EXPECT_EQ(counts.pageable_to_device, 0U);
    EXPECT_EQ(counts.device_to_pageable, 0U);
    calls.push_back(counts.calls);
  }
  EXPECT_EQ(calls.front(), calls.back());
}

TEST_F(CudaCallCounts, SearchesAtTheSameTimeHaveAHandleEach) {
  const support::Problem problem = support::make_problem({.rows = 300, .queries = 3, .dim = 6, .seed = 8});
  const Context context = Context::cuda(0, {.threads = 1});
  const Exact index = Exact::prepare(context, problem.base);
  const oracle::Answer expected =
      support::as_expected(knn(Context::cpu({.threads = 1}), problem.queries, problem.base, 4));
  constexpr std::size_t threads = 4;
  const auto search_at_once = [&] {
    std::vector<std::thread> running;
    std::vector<char> right(threads, 0);
    for (std::size_t i = 0; i < threads; ++i)
      running.emplace_back([&, i] {
        for (int repeat = 0; repeat < 3; ++repeat)
          right[i] = support::same(expected, index.search(context, problem.queries, 4)) ? 1 : 0;
      });
    for (std::thread& thread : running) thread.join();
    EXPECT_EQ(right, std::vector<char>(threads, 1));
  };
  const CallCounts counts = counts_of(search_at_once);
  EXPECT_GE(counts.handle_creations(), 1U);
  // A search has two sets of streams, one for its queries: over time both may be the one that multiplies.
  EXPECT_LE(counts.handle_creations(), 2 * threads);
}

// CUDA compares the release threshold with all that a pool holds: without the live part it would give the
// temporary memory back at every wait.
TEST_F(CudaCallCounts, ThePoolKeepsTemporaryMemoryNextToALargeIndex) {
  const Context context = Context::cuda(0);
  const gpu::CudaStream stream(context.state());
  const gpu::DeviceBuffer<std::byte> live(stream, std::size_t{128} << 20, "test");
  const auto use_more = [&] {
    { const gpu::DeviceBuffer<std::byte> temporary(stream, std::size_t{144} << 20, "test"); }
    stream.synchronize("test");
  };
  use_more();
  EXPECT_EQ(counts_of(use_more).pool_growths, 0U);
}

// As much as the margin is kept, and not for ever.
TEST_F(CudaCallCounts, ThePoolGivesBackWhatIsBeyondItsMargin) {
  const Context context = Context::cuda(0);
  const gpu::CudaStream stream(context.state());
  const auto use = [&] {
    { const gpu::DeviceBuffer<std::byte> temporary(stream, std::size_t{320} << 20, "test"); }
    stream.synchronize("test");
  };
  use();
  EXPECT_EQ(counts_of(use).pool_growth_bytes, std::size_t{64} << 20);
}

}  // namespace
}  // namespace nearwise
