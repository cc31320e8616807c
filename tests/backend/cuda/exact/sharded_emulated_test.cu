// One of several devices fails: the error names it, and no device leaks.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "cuda_emulation/control.h"
#include "nearwise/sharded.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

class CudaShardedFailures : public gpu::CudaTest {
 protected:
  static std::vector<Context> contexts() {
    std::vector<Context> made;
    for (int ordinal = 0; ordinal < 3; ++ordinal)
      made.push_back(Context::cuda(ordinal % gpu::device_count(), {.threads = 1}));
    return made;
  }

  const support::Problem problem_ = support::make_problem({.rows = 60, .queries = 5, .dim = 6, .seed = 4});
  const Context host_ = Context::cpu({.threads = 1});
};

TEST_F(CudaShardedFailures, EveryAllocationInTurn) {
  const std::vector<Context> devices = contexts();
  const oracle::Answer expected = support::as_expected(knn(host_, problem_.queries, problem_.base, 3));
  const auto search = [&] {
    const auto index = shard_exact(devices, problem_.base);
    EXPECT_TRUE(support::same(expected, index.search(host_, problem_.queries, 3)));
  };
  gpu::release_kept();
  const std::uint64_t before = cuda_emulation::allocations();
  search();
  const std::uint64_t tried = cuda_emulation::allocations() - before;
  int errors = 0;
  for (std::uint64_t number = 1; number <= tried; ++number) {
    gpu::release_kept();
    cuda_emulation::fail_allocation(number);
    const Error error = gpu::error_of(search);
    if (error.code() != ErrorCode::internal) {
      ++errors;
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
      EXPECT_NE(std::string(error.what()).find("(on cuda:"), std::string::npos) << error.what();
    }
    gpu::release_kept();
    EXPECT_EQ(cuda_emulation::accounting(), cuda_emulation::Accounting{}) << number;
    for (const Context& context : devices) EXPECT_EQ(context.memory_used(), 0U);
  }
  cuda_emulation::fail_allocation(0);
  EXPECT_GE(errors, 3);
}

TEST_F(CudaShardedFailures, TheDeviceIsTheOneThatFailed) {
  const std::vector<Context> devices = contexts();
  const auto failing = [&](int ordinal) {
    std::vector<Placed<Exact>> parts;
    for (int i = 0; i < 3; ++i) {
      const Context context = i == ordinal ? Context::cuda(i, {.threads = 1, .memory_limit = 1})
                                           : devices[static_cast<std::size_t>(i)];
      parts.push_back({context, Exact::prepare(devices[static_cast<std::size_t>(i)], problem_.base)});
    }
    return Sharded<Exact>(std::move(parts));
  };
  for (const int ordinal : {0, 1, 2}) {
    const std::string message =
        gpu::error_of([&] { failing(ordinal).search(host_, problem_.queries, 3); }).what();
    const std::string expected =
        "(on cuda:" + std::to_string(ordinal) + ", number " + std::to_string(ordinal + 1) + " of 3)";
    EXPECT_TRUE(message.ends_with(expected)) << message;
  }
}

TEST_F(CudaShardedFailures, AFailingCallNamesItsDevice) {
  const std::vector<Context> devices = contexts();
  const auto index = shard_exact(devices, problem_.base);
  cuda_emulation::fail_call("cublasGemm", cudaErrorLaunchFailure);
  const Error error = gpu::error_of([&] { index.search(host_, problem_.queries, 3); });
  EXPECT_EQ(error.code(), ErrorCode::device);
  EXPECT_NE(std::string(error.what()).find("(on cuda:"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace nearwise
