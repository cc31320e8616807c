// k-means where memory or calls fail: each in turn, the CPU's bytes or a clean error, nothing left behind.
#include <gtest/gtest.h>

#include <cstdint>

#include "backend/cuda/cuda_test.h"
#include "cuda_emulation/control.h"
#include "nearwise/kmeans.h"
#include "support/kmeans_cases.h"

namespace nearwise {
namespace {

using gpu::error_of;

// Many rows are equally near to several centroids: exact search decides them.
class CudaKMeansFailures : public gpu::CudaTest {
 protected:
  static constexpr KMeansOptions options = {.iterations = 1, .tolerance = 0, .seeding = Seeding::random};
  const support::Rows data_{support::generate(support::Kind::integers, 30, 3, 3), ElementType::f32};
  const KMeans expected_ = train_kmeans(Context::cpu({.threads = 1}), data_, 8, options);

  bool right_answer(const Context& context) const {
    return support::same(expected_, train_kmeans(context, data_, 8, options));
  }

  // The error, or internal where there is none: then the answer is right.
  Error outcome(const Context& context) const {
    return error_of([&] { EXPECT_TRUE(right_answer(context)); });
  }
};

TEST_F(CudaKMeansFailures, EveryAllocationInTurn) {
  const std::uint64_t before = cuda_emulation::allocations();
  EXPECT_TRUE(right_answer(Context::cuda(0)));
  const std::uint64_t tried = cuda_emulation::allocations() - before;
  ASSERT_GE(tried, 30U);
  int answers = 0;
  for (std::uint64_t number = 1; number <= tried; ++number) {
    const Context context = Context::cuda(0);
    cuda_emulation::fail_allocation(number);
    const Error error = outcome(context);
    if (error.code() == ErrorCode::internal)
      ++answers;
    else
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    EXPECT_EQ(context.memory_used(), 0U);
    EXPECT_EQ(cuda_emulation::accounting(), cuda_emulation::Accounting{}) << number;
  }
  cuda_emulation::fail_allocation(0);
  // Working memory is tried again, smaller.
  EXPECT_GE(answers, 10);
}

TEST_F(CudaKMeansFailures, EveryCallInTurn) {
  const Context context = Context::cuda(0);
  for (const char* call : {"cudaMemGetInfo", "cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaMemsetAsync",
                           "cudaLaunchKernelEx", "cublasCreate", "cublasGemm"}) {
    cuda_emulation::fail_call(call, cudaErrorLaunchFailure);
    EXPECT_EQ(outcome(context).code(), ErrorCode::device) << call;
    EXPECT_EQ(cuda_emulation::accounting(), cuda_emulation::Accounting{}) << call;
    EXPECT_EQ(context.memory_used(), 0U) << call;
    EXPECT_TRUE(right_answer(context)) << "the next call works again, after " << call;
  }
}

TEST_F(CudaKMeansFailures, CancelledBetweenIterations) {
  for (const int when : {0, 1}) {
    int reports = 0;
    double now = 0;
    Context* running = nullptr;
    Context context = Context::cuda(0, {.progress =
                                            [&](const Progress&) {
                                              if (reports++ == when) running->cancel();
                                            },
                                        .clock = [&] { return now += 1; }});
    running = &context;
    const Error error =
        error_of([&] { train_kmeans(context, data_, 8, {.iterations = 20, .tolerance = 0}); });
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

}  // namespace
}  // namespace nearwise
