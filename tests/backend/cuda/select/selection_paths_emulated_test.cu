// Counts the paths of random rows through WarpSelect on the emulated device: rounds without candidates,
// rounds with candidates, merges. tools/gpu_estimate.py reads the recorded properties.
//
// Catches values read twice, queues merged before they are full, stale thresholds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/device_selection.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "core/checked.h"
#include "cuda_emulation/control.h"

namespace nearwise {
namespace {

using cuda_emulation::Collective;
using cuda_emulation::CollectiveCount;

// Counts of one collective in one file, by line.
std::vector<CollectiveCount> counts_in(const std::string& file, Collective collective) {
  std::vector<CollectiveCount> found = cuda_emulation::collective_counts();
  std::erase_if(found, [&](const CollectiveCount& count) {
    return count.collective != collective || !count.file.ends_with(file);
  });
  return found;
}

// Capacity of the candidate queue for k.
template <std::size_t number = 0>
double candidate_room(std::size_t k) {
  constexpr int capacity = gpu::tuning::select_capacities[number];
  if (k <= std::size_t{capacity}) return gpu::tuning::candidate_registers<capacity> * gpu::warp_lanes;
  if constexpr (number + 1 < gpu::tuning::select_capacities.size()) return candidate_room<number + 1>(k);
  return 0;
}

// A value is among the k best of n with probability k / n, so the candidates of one merge arrive while n
// grows by a constant factor; the first k arrive one after the other. Half of the last 32 entries stay free.
double expected_merges(std::size_t k, std::size_t cols) {
  const double per_merge = candidate_room(k) - gpu::warp_lanes / 2;
  const auto wanted = static_cast<double>(k);
  return wanted / per_merge + std::log(static_cast<double>(cols) / wanted) / std::log1p(per_merge / wanted);
}

struct Shape {
  std::size_t k;
  std::size_t cols;
};

class SelectionPaths : public gpu::CudaTest, public testing::WithParamInterface<Shape> {};

// 128,000 is the row length of the paper (section 6.1).
INSTANTIATE_TEST_SUITE_P(Uniform, SelectionPaths, testing::ValuesIn([] {
                           std::vector<Shape> shapes;
                           for (const std::size_t k : {10, 32, 100, 256, 512, 1000, 1024})
                             for (const std::size_t cols : {10'000, 128'000, 1'000'000})
                               shapes.push_back({k, cols});
                           return shapes;
                         }()),
                         [](const auto& instance) {
                           return fmt::format("k{}_columns{}", instance.param.k, instance.param.cols);
                         });

TEST_P(SelectionPaths, AreCounted) {
  if (cuda_emulation::checks_accesses()) GTEST_SKIP() << "paths do not depend on the checks";
  const auto [k, cols] = GetParam();
  const std::size_t rows = cols > 500'000 ? 1 : 4;
  const support::DeviceSelection selection = {
      .kind = support::RowKind::uniform, .rows = rows, .cols = cols, .k = k, .cuts = {.target_parts = 1}};
  cuda_emulation::reset_collective_counts();
  selection.expect_oracle();

  const std::vector<CollectiveCount> votes = counts_in("kernels/select/select_rows.cuh", Collective::any);
  ASSERT_EQ(votes.size(), 2U) << "one for the round, one for more candidates";
  const std::uint64_t rounds = votes[0].times;
  const std::uint64_t candidate_rounds = votes[0].not_zero;
  const std::uint64_t insertions = votes[1].times;
  const std::vector<CollectiveCount> ballots = counts_in("warp/warp_select.cuh", Collective::ballot);
  ASSERT_EQ(ballots.size(), 1U) << "of those whose key joins the candidates";
  const std::vector<CollectiveCount> kth = counts_in("warp/warp_select.cuh", Collective::shuffle);
  ASSERT_EQ(kth.size(), 1U) << "the k-th best, at the end of a merge";
  const std::uint64_t merges = kth[0].times;
  std::uint64_t shuffles = 0;
  for (const CollectiveCount& count : counts_in("warp/lane_network.cuh", Collective::shuffle_xor))
    shuffles += count.times;

  const std::size_t values = gpu::tuning::values_per_lane;
  EXPECT_EQ(rounds, rows * divide_up(cols, values * std::size_t{gpu::warp_lanes}));
  EXPECT_EQ(ballots[0].times, insertions);
  EXPECT_LE(candidate_rounds, insertions);
  const double expected = expected_merges(k, cols);
  EXPECT_NEAR(static_cast<double>(merges) / static_cast<double>(rows), expected, 2 + expected / 8);
  RecordProperty("rows", std::to_string(rows));
  RecordProperty("rounds", std::to_string(rounds));
  RecordProperty("candidate_rounds", std::to_string(candidate_rounds));
  RecordProperty("insertions", std::to_string(insertions));
  RecordProperty("merges", std::to_string(merges));
  RecordProperty("shuffles", std::to_string(shuffles));
}

}  // namespace
}  // namespace nearwise
