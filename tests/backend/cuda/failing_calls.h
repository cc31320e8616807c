// Runs work with every allocation or call failing in turn: the right result or a clean error, and no leaks.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "backend/cuda/cuda_test.h"
#include "cuda_emulation/control.h"
#include "nearwise/context.h"

namespace nearwise::gpu {

// right_answer(context) runs the work and checks its result. Returns the number of failures it survived, by
// retrying with less working memory.
template <typename RightAnswer>
int fail_every_allocation(std::uint64_t least_allocations, const RightAnswer& right_answer) {
  release_kept();
  const std::uint64_t before = cuda_emulation::allocations();
  EXPECT_TRUE(right_answer(Context::cuda(0)));
  const std::uint64_t tried = cuda_emulation::allocations() - before;
  EXPECT_GE(tried, least_allocations);
  int answers = 0;
  for (std::uint64_t number = 1; number <= tried; ++number) {
    const Context context = Context::cuda(0);
    release_kept();  // it is allocated again
    cuda_emulation::fail_allocation(number);
    const Error error = error_of([&] { EXPECT_TRUE(right_answer(context)) << "allocation " << number; });
    if (error.code() == ErrorCode::internal)
      ++answers;
    else
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    EXPECT_EQ(context.memory_used(), 0U) << "allocation " << number;
    release_kept();
    EXPECT_EQ(cuda_emulation::accounting(), cuda_emulation::Accounting{}) << "allocation " << number;
  }
  cuda_emulation::fail_allocation(0);
  return answers;
}

template <typename RightAnswer>
void fail_every_call(std::initializer_list<const char*> calls, const RightAnswer& right_answer) {
  const Context context = Context::cuda(0);
  for (const char* const call : calls) {
    release_kept();
    cuda_emulation::fail_call(call, cudaErrorLaunchFailure);
    EXPECT_EQ(error_of([&] { EXPECT_TRUE(right_answer(context)) << call; }).code(), ErrorCode::device)
        << call;
    release_kept();
    EXPECT_EQ(cuda_emulation::accounting(), cuda_emulation::Accounting{}) << call;
    EXPECT_EQ(context.memory_used(), 0U) << call;
    EXPECT_TRUE(right_answer(context)) << "the next call works again, after " << call;
  }
  release_kept();
}

}  // namespace nearwise::gpu
