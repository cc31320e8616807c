// Exact search with every allocation or call failing in turn: the exact result or a clean error, no leaks.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/failing_calls.h"
#include "cuda_emulation/control.h"
#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using gpu::error_of;

// Scores certify some queries; for others all rows are evaluated.
class CudaKnnFailures : public gpu::CudaTest {
 protected:
  const support::Problem problem_ = support::make_problem(
      {.kind = support::Kind::near_duplicates, .rows = 60, .queries = 4, .dim = 5, .seed = 3});
  const oracle::Answer expected_ =
      support::as_expected(knn(Context::cpu({.threads = 1}), problem_.queries, problem_.base, 2));

  bool right_answer(const Context& context) const {
    return support::same(expected_, knn(context, problem_.queries, problem_.base, 2));
  }
};

TEST_F(CudaKnnFailures, EveryAllocationInTurn) {
  EXPECT_GE(gpu::fail_every_allocation(10, [&](const Context& context) { return right_answer(context); }), 5);
}

TEST_F(CudaKnnFailures, EveryCallInTurn) {
  gpu::fail_every_call({"cudaMemGetInfo", "cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaMemsetAsync",
                        "cudaLaunchKernelEx", "cudaStreamSynchronize", "cublasCreate", "cublasGemm"},
                       [&](const Context& context) { return right_answer(context); });
}

// After a call with a block its products are still queued: the next block is packed meanwhile.
TEST_F(CudaKnnFailures, BlocksAreScannedWhileTheNextIsPacked) {
  const support::Problem large = support::make_problem({.rows = 2000, .queries = 3, .dim = 40, .seed = 1});
  double now = 0;
  std::vector<std::size_t> busy;
  const Context context =
      Context::cuda(0, {.memory_limit = 250'000,
                        .progress = [&](const Progress&) { busy.push_back(cuda_emulation::busy_streams()); },
                        .clock = [&] { return now += 1; }});
  knn(context, large.queries, large.base, 2);
  ASSERT_GE(busy.size(), 4U) << "blocks, and the end";
  for (std::size_t i = 0; i + 1 < busy.size(); ++i) EXPECT_EQ(busy[i], 1U) << i;
  EXPECT_EQ(busy.back(), 0U);
}

// The same for the paths of large inputs.
TEST_F(CudaKnnFailures, EveryCallOfStaging) {
  const support::Problem large = support::make_problem({.rows = 1100, .queries = 1, .dim = 64, .seed = 1});
  const oracle::Answer expected =
      support::as_expected(knn(Context::cpu({.threads = 1}), large.queries, large.base, 2));
  const Context context = Context::cuda(0);
  const auto search = [&] {
    EXPECT_TRUE(support::same(expected, knn(context, large.queries, large.base, 2)));
  };
  for (const char* call : {"cudaHostAlloc", "cudaEventCreateWithFlags", "cudaEventRecord"}) {
    gpu::release_staging_buffers();
    cuda_emulation::fail_call(call, cudaErrorLaunchFailure);
    EXPECT_EQ(error_of(search).code(), ErrorCode::device) << call;
    EXPECT_EQ(context.memory_used(), 0U) << call;
    search();
  }
  // Failure to pin memory is not an error.
  gpu::release_staging_buffers();
  cuda_emulation::fail_call("cudaHostAlloc", cudaErrorMemoryAllocation);
  search();
  gpu::release_kept();
  EXPECT_EQ(cuda_emulation::accounting(), cuda_emulation::Accounting{});
}

}  // namespace
}  // namespace nearwise
