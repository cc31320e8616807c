// k-means with every allocation or call failing in turn: the CPU's bytes or a clean error, no leaks.
#include <gtest/gtest.h>

#include <cstdint>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/failing_calls.h"
#include "cuda_emulation/control.h"
#include "nearwise/kmeans.h"
#include "support/kmeans_cases.h"

namespace nearwise {
namespace {

using gpu::error_of;

// Many rows are equally near to several centroids and need exact search.
class CudaKMeansFailures : public gpu::CudaTest {
 protected:
  static constexpr KMeansOptions options = {.iterations = 1, .tolerance = 0, .seeding = Seeding::random};
  const support::Rows data_{support::generate(support::Kind::integers, 30, 3, 3), ElementType::f32};
  const KMeans expected_ = train_kmeans(Context::cpu({.threads = 1}), data_, 8, options);

  bool right_answer(const Context& context) const {
    return support::same(expected_, train_kmeans(context, data_, 8, options));
  }
};

TEST_F(CudaKMeansFailures, EveryAllocationInTurn) {
  EXPECT_GE(gpu::fail_every_allocation(30, [&](const Context& context) { return right_answer(context); }),
            10);
}

TEST_F(CudaKMeansFailures, EveryCallInTurn) {
  gpu::fail_every_call({"cudaMemGetInfo", "cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaMemsetAsync",
                        "cudaLaunchKernelEx", "cublasCreate", "cublasGemm"},
                       [&](const Context& context) { return right_answer(context); });
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
