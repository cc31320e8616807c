// For tests that need a CUDA device, real or emulated: skipped with a message where there is none.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/device/staging.h"
#include "backend/cuda/device/stream.h"
#include "nearwise/context.h"
#include "support/error_of.h"

namespace nearwise::gpu {

inline int device_count() { return cuda_backend()->device_count(); }

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "this machine has no CUDA device";
  }
  void TearDown() override { release_staging_areas(); }
};

using support::error_of;

// Whether this run has generated case `number`. Where NEARWISE_TEST_SHARE says "2/5" it has every fifth, from the second
// on: the check build has five schedules, which share the cases among them.
inline bool is_due(std::uint64_t number) {
  const char* const share = std::getenv("NEARWISE_TEST_SHARE");
  if (share == nullptr) return true;
  std::uint64_t mine = 1;
  std::uint64_t runs = 1;
  std::istringstream text(share);
  char slash = 0;
  text >> mine >> slash >> runs;
  return number % runs == mine - 1;
}

}  // namespace nearwise::gpu
