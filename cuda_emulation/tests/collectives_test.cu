// Results of collectives, barriers, atomics and intrinsics, as the CUDA programming guide defines them.
#include <gtest/gtest.h>

#include <vector>

#include "backend/cuda/device/gpu.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

using nearwise::gpu::launch;
using nearwise::support::DeviceArray;

constexpr unsigned all_lanes = 0xffffffffu;

template <typename Kernel>
std::vector<int> run(Kernel kernel, unsigned threads, unsigned blocks = 1) {
  const DeviceArray<int> out(std::vector<int>(threads * blocks));
  launch(kernel, dim3(blocks), dim3(threads), 0, nullptr, out.data());
  return out.to_host();
}

__global__ void shuffle_all(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const int from = __shfl_sync(all_lanes, lane, 5);
  const int from_segment = __shfl_sync(all_lanes, lane, 9, 8);
  const int up = __shfl_up_sync(all_lanes, lane, 3);
  const int down = __shfl_down_sync(all_lanes, lane, 3, 16);
  const int crossed = __shfl_xor_sync(all_lanes, lane, 31);
  const bool right = from == 5 && from_segment == lane / 8 * 8 + 1 && up == (lane < 3 ? lane : lane - 3) &&
                     down == (lane % 16 > 12 ? lane : lane + 3) && crossed == 31 - lane;
  out[lane] = right ? 1 : 0;
}

TEST(Collectives, Shuffles) { EXPECT_EQ(run(shuffle_all, 32), std::vector<int>(32, 1)); }

__global__ void vote_all(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  bool right = __ballot_sync(all_lanes, lane % 2) == 0xaaaaaaaau;
  right = right && __any_sync(all_lanes, lane == 7) != 0 && __any_sync(all_lanes, 0) == 0;
  right = right && __all_sync(all_lanes, 1) != 0 && __all_sync(all_lanes, lane != 7) == 0;
  right = right && __match_any_sync(all_lanes, lane / 4) == 0xfu << (lane / 4 * 4);
  int same = 0;
  right = right && __match_all_sync(all_lanes, 3, &same) == all_lanes && same == 1;
  right = right && __match_all_sync(all_lanes, lane, &same) == 0 && same == 0;
  right = right && __reduce_add_sync(all_lanes, lane) == 496 && __reduce_min_sync(all_lanes, lane - 5) == -5;
  right = right && __reduce_max_sync(all_lanes, static_cast<unsigned>(lane - 5)) == 0xffffffffu;
  right = right && __reduce_xor_sync(all_lanes, 1u << lane) == all_lanes;
  out[lane] = right ? 1 : 0;
}

TEST(Collectives, VotesAndReductions) { EXPECT_EQ(run(vote_all, 32), std::vector<int>(32, 1)); }

__global__ void part_of_a_warp(int* out) {
  const unsigned lane = threadIdx.x;
  if (lane < 20) out[lane] = __reduce_add_sync(0x000fffffu, 1);
}

TEST(Collectives, PartsOfAWarp) {
  const std::vector<int> found = run(part_of_a_warp, 32);
  EXPECT_EQ(std::vector<int>(found.begin(), found.begin() + 20), std::vector<int>(20, 20));
}

__global__ void count_at_barrier(int* out) {
  const int thread = static_cast<int>(threadIdx.x);
  const int count = __syncthreads_count(thread < 10);
  const int all = __syncthreads_and(thread < 10);
  const int any = __syncthreads_or(thread < 10);
  out[thread] = count * 100 + (all != 0 ? 10 : 0) + (any != 0 ? 1 : 0);
}

TEST(Barriers, CountVotes) { EXPECT_EQ(run(count_at_barrier, 64), std::vector<int>(64, 1001)); }

__global__ void rotate_through_shared(int* out) {
  __shared__ int values[96];
  values[threadIdx.x] = static_cast<int>(blockIdx.x * 1000 + threadIdx.x);
  __syncthreads();
  out[blockIdx.x * 96 + threadIdx.x] = values[(threadIdx.x + 1) % 96];
}

// Blocks run interleaved, each with its own shared memory.
TEST(SharedMemory, BelongsToABlock) {
  const std::vector<int> found = run(rotate_through_shared, 96, 10);
  for (int block = 0; block < 10; ++block)
    for (int thread = 0; thread < 96; ++thread)
      ASSERT_EQ(found[static_cast<std::size_t>(block * 96 + thread)], block * 1000 + (thread + 1) % 96);
}

__global__ void sum_dynamic(int* out) {
  int* const values = nearwise::gpu::dynamic_shared<int>();
  const int count = 15000;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 64) values[i] = 1;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  out[threadIdx.x] = sum;
}

TEST(SharedMemory, MayExceed48Kilobytes) {
  const DeviceArray<int> out(64);
  launch(sum_dynamic, dim3(1), dim3(64), 60000, nullptr, out.data());
  EXPECT_EQ(out.to_host(), std::vector<int>(64, 15000));
}

__global__ void atomics(int* out) {
  atomicAdd(&out[0], 2);
  atomicMax(&out[1], static_cast<int>(threadIdx.x));
  atomicOr(&out[2], 1 << (threadIdx.x % 8));
  for (int seen = 0, before = -1; before != seen;) {
    if (before >= 0) seen = before;
    before = atomicCAS(&out[3], seen, seen + 1);
  }
}

TEST(Atomics, LoseNoUpdate) {
  const std::vector<int> found = run(atomics, 64, 4);
  EXPECT_EQ(found[0], 512);
  EXPECT_EQ(found[1], 63);
  EXPECT_EQ(found[2], 255);
  EXPECT_EQ(found[3], 256);
}

__global__ void intrinsics(int* out) {
  bool right = __popc(0xf0f0u) == 8 && __ffs(0x10) == 5 && __ffs(0) == 0 && __clz(1) == 31 && __clz(0) == 32;
  right = right && __brev(1u) == 0x80000000u && __float_as_int(1.0f) == 0x3f800000;
  right = right && min(1.0f, NAN) == 1.0f && max(NAN, 1.0f) == 1.0f && min(2, 1) == 1;
  right = right && __dp4a(0x01ff0203u, 0x0a010504u, 7u) == 7 + 10 + 255 + 10 + 12;
  right = right && __dp2a_lo(0xffff0002u, 0x0b0a0504u, 1u) == 1 + 2 * 4 + 65535 * 5;
  right = right && __dp2a_hi(0xffff0002u, 0x0b0a0504u, 1u) == 1 + 2 * 10 + 65535 * 11;
  out[threadIdx.x] = right ? 1 : 0;
}

TEST(Intrinsics, AreWhatCudaHas) { EXPECT_EQ(run(intrinsics, 1), std::vector<int>(1, 1)); }

__global__ void through_the_grid(int* out) {
  const int block = static_cast<int>(blockIdx.x);
  out[block] = block;
  cooperative_groups::this_grid().sync();
  if (block == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += out[i];
    out[4] = sum;
  }
}

TEST(CooperativeGroups, GridBarrier) {
  const DeviceArray<int> out(std::vector<int>(5));
  launch(through_the_grid, dim3(4), dim3(1), 0, nullptr, out.data());
  EXPECT_EQ(out.to_host().back(), 6);
}

__global__ void sum_tiles(int* out) {
  const auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
  int sum = static_cast<int>(threadIdx.x);
  for (int distance = 4; distance > 0; distance /= 2) sum += tile.shfl_xor(sum, distance);
  out[threadIdx.x] = sum;
}

TEST(CooperativeGroups, Tiles) {
  const std::vector<int> found = run(sum_tiles, 32);
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(found[static_cast<std::size_t>(lane)], lane / 8 * 64 + 28);
}

}  // namespace
}  // namespace cuda_emulation
