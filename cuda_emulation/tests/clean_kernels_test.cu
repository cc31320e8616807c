// Correct kernels give right results and no report under every schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "backend/cuda/device/gpu.h"
#include "cuda_emulation/control.h"
#include "cuda_emulation/tests/kernels/locked_insert.h"
#include "cuda_emulation/tests/kernels/tiled_distances.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

using nearwise::gpu::launch;
using nearwise::support::DeviceArray;

class CleanKernels : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    before_ = options();
    options().seed = GetParam();
  }
  void TearDown() override { options() = before_; }

 private:
  Options before_;
};

TEST_P(CleanKernels, TiledDistances) {
  constexpr int n = 37, m = 50, dim = 40;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(n * dim), y(m * dim);
  for (float& value : x) value = normal(random);
  for (float& value : y) value = normal(random);
  const DeviceArray<float> device_x(x), device_y(y), device_distances(n * m);
  launch(tiled_distances<16>, dim3((m + 15) / 16, (n + 15) / 16), dim3(16, 16), 0, nullptr, device_x.data(),
         device_y.data(), n, m, dim, device_distances.data());
  const std::vector<float> distances = device_distances.to_host();
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) {
      double expected = 0;
      for (int k = 0; k < dim; ++k) expected += std::pow(double{x[i * dim + k]} - y[j * dim + k], 2);
      ASSERT_NEAR(distances[i * m + j], expected, 1e-5 * expected);
    }
}

TEST_P(CleanKernels, LockedInsert) {
  constexpr int segments = 8, candidates = 300;
  std::mt19937 random(3);
  std::vector<int> segment(candidates), id(candidates);
  std::vector<float> distance(candidates);
  for (int i = 0; i < candidates; ++i) {
    segment[i] = static_cast<int>(random() % segments);
    id[i] = i;
    distance[i] = static_cast<float>(random() % 100000);
  }
  const DeviceArray<int> device_segment(segment), device_id(id),
      kept_ids(std::vector<int>(segments * 32, -1));
  const DeviceArray<int> locks(std::vector<int>(segments, 0));
  const DeviceArray<float> device_distance(distance), kept(std::vector<float>(segments * 32, INFINITY));
  launch(locked_insert<>, dim3(4), dim3(64), 0, nullptr, device_segment.data(), device_distance.data(),
         device_id.data(), candidates, kept.data(), kept_ids.data(), locks.data());
  const std::vector<float> found = kept.to_host();
  for (int s = 0; s < segments; ++s) {
    std::vector<float> expected;
    for (int i = 0; i < candidates; ++i)
      if (segment[i] == s) expected.push_back(distance[i]);
    std::sort(expected.begin(), expected.end());
    expected.resize(32, INFINITY);
    EXPECT_EQ(std::vector<float>(found.begin() + s * 32, found.begin() + s * 32 + 32), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CleanKernels, testing::Values(1, 2, 3, 4, 5));

}  // namespace
}  // namespace cuda_emulation
