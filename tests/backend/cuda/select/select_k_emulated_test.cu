// select_k with every allocation failing in turn: the exact result or a clean error, no leaks.
#include <gtest/gtest.h>

#include <cstdint>

#include "backend/cuda/failing_calls.h"
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
    // After a failure smaller tiles are tried; four rows can be split. Pinned memory is not tried again.
    const auto right_answer = [&](const Context& context) {
      return bool(same(expected, select_k(context, values, k)));
    };
    gpu::release_kept();
    const std::uint64_t before = cuda_emulation::allocations();
    EXPECT_TRUE(right_answer(Context::cuda(0)));
    const auto tried = static_cast<int>(cuda_emulation::allocations() - before);
    const int pinned = 1;
    EXPECT_EQ(gpu::fail_every_allocation(3, right_answer), tried - pinned);
  }
}

}  // namespace
}  // namespace nearwise
