// main() of tests on the emulated device: every test must leave the device as it found it.
#include <gtest/gtest.h>

#include "cuda_emulation/control.h"

namespace {

class NothingLeft : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    const cuda_emulation::Accounting left = cuda_emulation::accounting();
    EXPECT_EQ(left, cuda_emulation::Accounting{}) << "left behind: " << cuda_emulation::to_string(left);
    EXPECT_EQ(cuda_emulation::take_report(), "") << "the device found this, and the test did not look";
    cuda_emulation::fail_allocation(0);
  }
};

}  // namespace

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  testing::UnitTest::GetInstance()->listeners().Append(new NothingLeft);
  return RUN_ALL_TESTS();
}
