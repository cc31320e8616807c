// The odd-size networks for every queue size, not only those in use.
#include "backend/cuda/warp/lane_network.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/warp/selection_key.cuh"
#include "core/math/random.h"
#include "support/device_array.h"

namespace nearwise {
namespace {

using gpu::PositionKey;
using gpu::warp_lanes;
using support::DeviceArray;

class LaneNetwork : public gpu::CudaTest {};

template <int Count>
__global__ void sort_kernel(std::int64_t* elements) {
  const int lane = static_cast<int>(threadIdx.x);
  PositionKey array[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) array[i] = {elements[i * warp_lanes + lane]};
  gpu::sort_odd<0, Count>(array, lane);
#pragma unroll
  for (int i = 0; i < Count; ++i) elements[i * warp_lanes + lane] = array[i].bits;
}

template <int Left, int Right, bool keep_right>
__global__ void merge_kernel(std::int64_t* elements) {
  const int lane = static_cast<int>(threadIdx.x);
  PositionKey array[Left + Right];
#pragma unroll
  for (int i = 0; i < Left + Right; ++i) array[i] = {elements[i * warp_lanes + lane]};
  gpu::merge_odd<0, Left, Left, Right, keep_right>(array, array, lane);
#pragma unroll
  for (int i = 0; i < Left + Right; ++i) elements[i * warp_lanes + lane] = array[i].bits;
}

// With many equal keys.
std::vector<std::int64_t> some_numbers(std::size_t count, std::uint64_t seed) {
  const Random random(seed);
  std::vector<std::int64_t> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<std::int64_t>(random.below(i, 2 * count)) - 40;
  return numbers;
}

template <int Count>
void expect_sorted() {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::vector<std::int64_t> numbers = some_numbers(Count * warp_lanes, seed);
    DeviceArray<std::int64_t> device(numbers);
    gpu::launch(sort_kernel<Count>, dim3(1), dim3(warp_lanes), 0, nullptr, device.data());
    std::ranges::sort(numbers);
    EXPECT_EQ(device.to_host(), numbers) << Count << " registers, seed " << seed;
  }
}

template <int Left, int Right>
void expect_merged() {
  constexpr auto middle = Left * warp_lanes;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::vector<std::int64_t> numbers = some_numbers((Left + Right) * warp_lanes, seed);
    std::sort(numbers.begin(), numbers.begin() + middle);
    std::sort(numbers.begin() + middle, numbers.end());
    DeviceArray<std::int64_t> whole(numbers);
    DeviceArray<std::int64_t> left_only(numbers);
    gpu::launch(merge_kernel<Left, Right, true>, dim3(1), dim3(warp_lanes), 0, nullptr, whole.data());
    gpu::launch(merge_kernel<Left, Right, false>, dim3(1), dim3(warp_lanes), 0, nullptr, left_only.data());
    std::ranges::sort(numbers);
    EXPECT_EQ(whole.to_host(), numbers) << Left << " and " << Right << " registers, seed " << seed;
    std::vector<std::int64_t> left = left_only.to_host();
    left.resize(middle);
    numbers.resize(middle);
    EXPECT_EQ(left, numbers) << Left << " of " << Right << " more registers, seed " << seed;
  }
}

TEST_F(LaneNetwork, SortsAnySize) {
  expect_sorted<1>();
  expect_sorted<2>();
  expect_sorted<3>();
  expect_sorted<4>();
  expect_sorted<5>();
  expect_sorted<6>();
  expect_sorted<7>();
  expect_sorted<8>();
  expect_sorted<11>();
}

TEST_F(LaneNetwork, MergesAnySizes) {
  expect_merged<1, 1>();
  expect_merged<1, 3>();
  expect_merged<2, 1>();
  expect_merged<3, 2>();
  expect_merged<3, 7>();
  expect_merged<4, 4>();
  expect_merged<5, 3>();
  expect_merged<6, 8>();
  expect_merged<13, 3>();
}

}  // namespace
}  // namespace nearwise
