// select_k where memory fails: every allocation in turn, the exact answer or a clean error, nothing left behind.
#include <gtest/gtest.h>

#include <cstdint>

#include "backend/cuda/cuda_test.h"
#include "cuda_emulation/control.h"
#include "nearwise/select_k.h"
#include "support/select_cases.h"

namespace nearwise {
namespace {

using support::column_number;
using support::RowKind;
using support::same;
using support::ValueRows;

TEST(SelectKFailures, EveryAllocationInTurn) {
  for (const std::size_t k : {7, 1100}) {
    const ValueRows values(RowKind::anything, 4, 3000, 9);
    const auto expected = oracle::select_k(values, k, Order::smallest, column_number);
    const std::uint64_t before = cuda_emulation::allocations();
    EXPECT_TRUE(same(expected, select_k(Context::cuda(0), values, k)));
    const std::uint64_t tried = cuda_emulation::allocations() - before;
    ASSERT_GE(tried, 3U);
    int answers = 0;
    for (std::uint64_t number = 1; number <= tried; ++number) {
      const Context context = Context::cuda(0);
      cuda_emulation::fail_allocation(number);
      const Error error =
          gpu::error_of([&] { answers += same(expected, select_k(context, values, k)) ? 1 : 0; });
      if (error.code() != ErrorCode::internal) {
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
      }
      EXPECT_EQ(context.memory_used(), 0U);
    }
    // Once refused, smaller tiles are tried, and four rows can be cut.
    EXPECT_EQ(answers, static_cast<int>(tried));
    cuda_emulation::fail_allocation(0);
  }
}

}  // namespace
}  // namespace nearwise
