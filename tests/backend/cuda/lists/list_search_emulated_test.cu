// List search and product codes with failing allocations and calls.
#include <gtest/gtest.h>

#include "backend/cuda/failing_calls.h"
#include "support/list_cases.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::ListCase;

// Scores certify some queries among near duplicates, none among identical rows, which are all evaluated.
class CudaListFailures : public gpu::CudaTest, public testing::WithParamInterface<Kind> {
 protected:
  const ListCase codes_{{.kind = GetParam(),
                         .rows = 40,
                         .queries = 2,
                         .dim = 5,
                         .lists = 3,
                         .probes = 2,
                         .parts = 2,
                         .bits = 4,
                         .k = 2,
                         .candidates = 5,
                         .rerank = true}};
  const ListCase additive_{{.kind = GetParam(),
                            .rows = 40,
                            .queries = 1,
                            .dim = 2,
                            .lists = 2,
                            .probes = 2,
                            .parts = 2,
                            .additive = true,
                            .k = 2,
                            .candidates = 2}};
  const ListCase rows_{
      {.kind = GetParam(), .rows = 40, .queries = 2, .dim = 5, .lists = 3, .k = 2, .candidates = 2}};

  bool right_answer(const Context& context) const {
    return codes_.holds(codes_.search(context)) && rows_.holds(rows_.search(context)) &&
           additive_.holds(additive_.search(context));
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, CudaListFailures, testing::Values(Kind::near_duplicates, Kind::identical),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(CudaListFailures, EveryAllocationInTurn) {
  EXPECT_GE(gpu::fail_every_allocation(40, [&](const Context& context) { return right_answer(context); }),
            20);
}

TEST_P(CudaListFailures, EveryCallInTurn) {
  gpu::fail_every_call({"cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernelEx",
                        "cudaStreamSynchronize"},
                       [&](const Context& context) { return right_answer(context); });
}

TEST(CudaQuantizerFailures, EveryAllocationInTurn) {
  const support::Rows rows(support::generate(Kind::normal, 70, 6, 1), ElementType::f32);
  const ProductQuantizer quantizer = support::untrained(Kind::normal, 6, 3, 4, 2);
  const auto codes = support::to_vector(quantizer.encode(Context::cpu({.threads = 1}), rows));
  EXPECT_GE(gpu::fail_every_allocation(5,
                                       [&](const Context& context) {
                                         return bool(support::same(codes, quantizer.encode(context, rows)));
                                       }),
            3);
}

}  // namespace
}  // namespace nearwise
