// Fixture of tests that need a CUDA device, real or emulated; skips them if there is none.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/device/staging.h"
#include "backend/cuda/device/stream.h"
#include "backend/cuda/device/stream_set.h"
#include "nearwise/context.h"
#include "support/error_of.h"

namespace nearwise::gpu {

inline int device_count() { return cuda_backend()->device_count(); }

// Frees what the process keeps for later operations.
inline void release_kept() {
  release_staging_buffers();
  release_idle_streams();
}

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "this machine has no CUDA device";
  }
  void TearDown() override { release_kept(); }
};

using support::error_of;

// Whether this run tests generated case `number`. With NEARWISE_TEST_SHARE=2/5 it is every fifth case, from
// the second on: the check build's five schedules share the cases.
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
