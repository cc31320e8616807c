// Loops and vectors that end soon after the flag of the thread is set.
#include "core/cancellable.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "nearwise/error.h"
#include "support/error_of.h"

namespace nearwise {
namespace {

using support::error_of;

class Cancellable : public testing::Test {
 protected:
  ~Cancellable() override { replace_thread_cancel_flag(before_); }

  CancelFlag flag_;
  const CancelFlag* const before_ = replace_thread_cancel_flag(&flag_);
};

TEST_F(Cancellable, StepsEndAfterAFewThousand) {
  for (const std::size_t steps : {1U, 3U, 1'000U, 5'000U}) {
    CancellableSteps counter;
    for (int i = 0; i < 20'000; ++i) counter.add(steps);
    CancelFlag set;
    set.set();
    replace_thread_cancel_flag(&set);
    std::size_t done = 0;
    const Error error = error_of([&] {
      for (; done < 1'000'000; done += steps) counter.add(steps);
    });
    replace_thread_cancel_flag(&flag_);
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
    EXPECT_LE(done, 4096U);
  }
}

TEST_F(Cancellable, StepsOfNothingTakeNothing) {
  flag_.set();
  CancellableSteps counter;
  for (int i = 0; i < 10'000; ++i) counter.add(0);
}

TEST_F(Cancellable, VectorsAreFilledAndCopiedWhole) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, cancellable_piece - 1, cancellable_piece,
                                 cancellable_piece + 1, 2 * cancellable_piece + 7}) {
    EXPECT_EQ(filled_vector(size, 7), std::vector<int>(size, 7));
    EXPECT_EQ(filled_vector(size, true), std::vector<bool>(size, true));
    std::vector<int> numbers(size);
    std::iota(numbers.begin(), numbers.end(), 0);
    EXPECT_EQ(copied_vector(std::span<const int>(numbers)), numbers);
  }
}

TEST_F(Cancellable, VectorsEndEarly) {
  const std::vector<int> numbers(10);
  flag_.set();
  EXPECT_EQ(error_of([] { filled_vector(10, 7); }).code(), ErrorCode::cancelled);
  EXPECT_EQ(error_of([&] { copied_vector(std::span(numbers)); }).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace nearwise
