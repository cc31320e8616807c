// Which collectives warps met in, by line.
#include <gtest/gtest.h>

#include <vector>

#include "backend/cuda/device/gpu.h"
#include "cuda_emulation/control.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

// Two votes a turn; from turn 3 on nobody agrees to the second.
__global__ void vote(int turns, int* out) {
  int agreed = 0;
  for (int turn = 0; turn < turns; ++turn) {
    agreed += __any_sync(~0u, 1);
    agreed += __any_sync(~0u, turn < 3 && threadIdx.x % 32 == 7);
  }
  out[threadIdx.x] = agreed;
}

TEST(Meetings, AreCountedPerWarpAndLine) {
  const nearwise::support::DeviceArray<int> out(std::vector<int>(64));
  forget_meetings();
  nearwise::gpu::launch(vote, dim3(1), dim3(64), 0, nullptr, 5, out.data());
  EXPECT_EQ(out.to_host().front(), 8);
  const std::vector<Meeting> found = meetings();
  ASSERT_EQ(found.size(), 2U);
  for (const Meeting& meeting : found) {
    EXPECT_TRUE(meeting.file.ends_with("meetings_test.cu")) << meeting.file;
    EXPECT_EQ(meeting.collective, Collective::any);
    EXPECT_EQ(meeting.times, 2U * 5U);
  }
  EXPECT_EQ(found[0].line + 1, found[1].line);
  EXPECT_EQ(found[0].not_zero, 2U * 5U);
  EXPECT_EQ(found[1].not_zero, 2U * 3U);
  forget_meetings();
  EXPECT_TRUE(meetings().empty());
}

}  // namespace
}  // namespace cuda_emulation
