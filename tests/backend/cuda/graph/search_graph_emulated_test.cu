// Beam search with failing allocations and calls.
#include <gtest/gtest.h>

#include "backend/cuda/failing_calls.h"
#include "support/graph_search_cases.h"

namespace nearwise {
namespace {

class CudaSearchGraphFailures : public gpu::CudaTest {
 protected:
  const support::GraphCase made_{{.type = ElementType::bf16,
                                  .rows = 60,
                                  .dim = 7,
                                  .queries = 3,
                                  .beam = 300,
                                  .nibbles = true,
                                  .allowed = 50,
                                  .absent = true}};
  const support::GraphFound expected_ = made_.search(Context::cpu({.threads = 1}));

  bool right_answer(const Context& context) const { return expected_ == made_.search(context); }
};

TEST_F(CudaSearchGraphFailures, EveryAllocationInTurn) {
  gpu::fail_every_allocation(20, [&](const Context& context) { return right_answer(context); });
}

TEST_F(CudaSearchGraphFailures, EveryCallInTurn) {
  gpu::fail_every_call({"cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernelEx",
                        "cudaStreamSynchronize"},
                       [&](const Context& context) { return right_answer(context); });
}

}  // namespace
}  // namespace nearwise
