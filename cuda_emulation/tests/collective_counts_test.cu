// Executions of collectives are counted by warp and source line.
#include <gtest/gtest.h>

#include <vector>

#include "backend/cuda/device/gpu.h"
#include "cuda_emulation/control.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

// Two votes per turn; from turn 3 on no lane agrees to the second.
__global__ void vote(int turns, int* out) {
  int agreed = 0;
  for (int turn = 0; turn < turns; ++turn) {
    agreed += __any_sync(~0u, 1);
    agreed += __any_sync(~0u, turn < 3 && threadIdx.x % 32 == 7);
  }
  out[threadIdx.x] = agreed;
}

TEST(CollectiveCounts, ArePerWarpAndLine) {
  const nearwise::support::DeviceArray<int> out(std::vector<int>(64));
  reset_collective_counts();
  nearwise::gpu::launch(vote, dim3(1), dim3(64), 0, nullptr, 5, out.data());
  EXPECT_EQ(out.to_host().front(), 8);
  const std::vector<CollectiveCount> counts = collective_counts();
  ASSERT_EQ(counts.size(), 2U);
  for (const CollectiveCount& count : counts) {
    EXPECT_TRUE(count.file.ends_with("collective_counts_test.cu")) << count.file;
    EXPECT_EQ(count.collective, Collective::any);
    EXPECT_EQ(count.times, 2U * 5U);
  }
  EXPECT_EQ(counts[0].line + 1, counts[1].line);
  EXPECT_EQ(counts[0].not_zero, 2U * 5U);
  EXPECT_EQ(counts[1].not_zero, 2U * 3U);
  reset_collective_counts();
  EXPECT_TRUE(collective_counts().empty());
}

}  // namespace
}  // namespace cuda_emulation
