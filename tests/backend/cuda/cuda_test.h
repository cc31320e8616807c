// For tests that need a CUDA device, real or emulated: skipped with a message where there is none.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "backend/backend.h"
#include "backend/cuda/staging.h"
#include "backend/cuda/stream.h"
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

}  // namespace nearwise::gpu
