// Pruning with failing allocations and calls.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "backend/cuda/failing_calls.h"
#include "support/prune_cases.h"

namespace nearwise {
namespace {

class CudaPruneEdgesFailures : public gpu::CudaTest {
 protected:
  const support::PruneCase made_{{.rows = 12, .some = true}};
  const std::vector<std::int32_t> expected_ = made_.edges(Context::cpu({.threads = 1}));

  bool right_answer(const Context& context) const { return expected_ == made_.edges(context); }
};

TEST_F(CudaPruneEdgesFailures, EveryAllocationInTurn) {
  gpu::fail_every_allocation(5, [&](const Context& context) { return right_answer(context); });
}

TEST_F(CudaPruneEdgesFailures, EveryCallInTurn) {
  gpu::fail_every_call(
      {"cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaLaunchKernelEx", "cudaStreamSynchronize"},
      [&](const Context& context) { return right_answer(context); });
}

}  // namespace
}  // namespace nearwise
