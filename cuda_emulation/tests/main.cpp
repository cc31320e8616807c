// main() of tests on the emulated device: every test must free its resources and read every finding.
#include <gtest/gtest.h>

#include "cuda_emulation/control.h"

namespace {

class LeakListener : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    const cuda_emulation::Accounting left = cuda_emulation::accounting();
    EXPECT_EQ(left, cuda_emulation::Accounting{}) << "leaked: " << cuda_emulation::to_string(left);
    EXPECT_EQ(cuda_emulation::take_report(), "") << "finding that the test has not read";
    cuda_emulation::fail_allocation(0);
  }
};

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  testing::UnitTest::GetInstance()->listeners().Append(new LeakListener);
  return RUN_ALL_TESTS();
}
