// Proof of sensitivity: every bug below must be reported, with a message that names it.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
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

constexpr unsigned all_lanes = 0xffffffffu;

__global__ void shuffle_outside_mask(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0x0000ffffu, static_cast<int>(threadIdx.x), 20);
}
__global__ void mask_without_caller(int* out) {
  out[threadIdx.x] = static_cast<int>(__ballot_sync(0x0000ffffu, 1));
}
__global__ void split_barrier(int* out) {
  if (threadIdx.x % 2 == 1) {
    __syncthreads();
  } else {
    out[threadIdx.x] = 0;
    __syncthreads();
  }
}
__global__ void never_released(int* flag) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    while (atomicAdd(flag, 0) == 0) __nanosleep(1);
  }
}
__global__ void different_collectives(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane < 8)
    out[lane] = __shfl_xor_sync(all_lanes, lane, 1);
  else
    out[lane] = __any_sync(all_lanes, 1);
}
__global__ void shared_read_before_write(int* out) {
  __shared__ int values[64];
  if (threadIdx.x < 63) values[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}
__global__ void no_syncwarp(int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}
__global__ void vote_is_no_fence(int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  __any_sync(all_lanes, 1);
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}
__global__ void dynamic_shared_overrun(int* out) {
  int* const values = nearwise::gpu::dynamic_shared<int>();
  values[threadIdx.x + 1] = 1;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}
__global__ void lost_update(int* counter) { *counter = *counter + 1; }
__global__ void copy(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void copy_vectors(const float4* from, float4* to) { to[threadIdx.x] = from[threadIdx.x]; }

constexpr int rows = 33;
constexpr int dim = 20;
constexpr int candidates = 200;

template <TileMistake mistake>
void run_tiled_distances() {
  const DeviceArray<float> x(std::vector<float>(rows * dim));
  const DeviceArray<float> y(std::vector<float>(rows * dim));
  const DeviceArray<float> distances(rows * rows);
  launch(tiled_distances<16, mistake>, dim3(3, 3), dim3(16, 16), 0, nullptr, x.data(), y.data(), rows, rows,
         dim, distances.data());
  static_cast<void>(cudaDeviceSynchronize());
}

template <LockMistake mistake>
void run_locked_insert() {
  std::vector<int> segments(candidates), ids(candidates);
  std::vector<float> distances(candidates);
  for (int i = 0; i < candidates; ++i) {
    ids[i] = i * 7 % 101;
    segments[i] = ids[i] % 2;
    distances[i] = static_cast<float>(ids[i]);
  }
  const DeviceArray<int> device_segments(segments), device_ids(ids), kept_ids(std::vector<int>(64, -1));
  const DeviceArray<int> locks(std::vector<int>(2));
  const DeviceArray<float> device_distances(distances), kept_distances(std::vector<float>(64, 1e30f));
  launch(locked_insert<mistake>, dim3(4), dim3(64), 0, nullptr, device_segments.data(),
         device_distances.data(), device_ids.data(), candidates, kept_distances.data(), kept_ids.data(),
         locks.data());
  static_cast<void>(cudaDeviceSynchronize());
}

std::function<void()> run_on_64_ints(void (*kernel)(int*), unsigned blocks, unsigned threads) {
  return [=] {
    const DeviceArray<int> out(std::vector<int>(64));
    launch(kernel, dim3(blocks), dim3(threads), 128, nullptr, out.data());
    static_cast<void>(cudaDeviceSynchronize());
  };
}

void read_uninitialised_memory() {
  const DeviceArray<int> from(64), to(64);
  launch(copy, dim3(1), dim3(64), 0, nullptr, from.data(), to.data());
  static_cast<void>(cudaDeviceSynchronize());
}

void read_host_memory() {
  const std::vector<int> from(32);
  const DeviceArray<int> to(32);
  launch(copy, dim3(1), dim3(32), 0, nullptr, from.data(), to.data());
  static_cast<void>(cudaDeviceSynchronize());
}

void read_freed_memory() {
  const DeviceArray<int> to(32);
  const int* freed = nullptr;
  {
    const DeviceArray<int> from(std::vector<int>(32));
    freed = from.data();
  }
  launch(copy, dim3(1), dim3(32), 0, nullptr, freed, to.data());
  static_cast<void>(cudaDeviceSynchronize());
}

void read_memory_of_another_device() {
  const DeviceArray<int> from(std::vector<int>(32));
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  {
    const DeviceArray<int> to(32);
    launch(copy, dim3(1), dim3(32), 0, nullptr, from.data(), to.data());
    static_cast<void>(cudaDeviceSynchronize());
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

std::function<void()> copy_floats(std::size_t first, std::size_t floats, unsigned threads) {
  return [=] {
    const DeviceArray<float> from(std::vector<float>(256));
    const DeviceArray<float> to(std::vector<float>(floats, 0.0f));
    launch(copy_vectors, dim3(1), dim3(threads), 0, nullptr,
           reinterpret_cast<const float4*>(from.data() + first), reinterpret_cast<float4*>(to.data()));
    static_cast<void>(cudaDeviceSynchronize());
  };
}

enum class Build { any, check };  // the builds that must find it

struct SeededBug {
  const char* name;
  Build found_by;
  const char* report;  // substring of the report
  std::function<void()> run;
};
std::ostream& operator<<(std::ostream& stream, const SeededBug& bug) { return stream << bug.name; }

const SeededBug seeded_bugs[] = {
    {"missing_barrier", Build::check, "race", run_tiled_distances<TileMistake::no_second_barrier>},
    {"row_overrun", Build::check, "outside device memory", run_tiled_distances<TileMistake::one_row_too_far>},
    {"no_release_fence", Build::check, "race", run_locked_insert<LockMistake::no_fence_at_release>},
    {"no_lock", Build::check, "race", run_locked_insert<LockMistake::no_lock>},
    {"lane_left_warp", Build::any, "livelock", run_locked_insert<LockMistake::lane_leaves_warp>},
    {"shuffle_outside_mask", Build::any, "not a participant", run_on_64_ints(shuffle_outside_mask, 2, 32)},
    {"mask_lacks_caller", Build::any, "lacks its lane", run_on_64_ints(mask_without_caller, 2, 32)},
    {"split_barrier", Build::any, "divergent __syncthreads", run_on_64_ints(split_barrier, 2, 64)},
    {"never_released", Build::any, "livelock", run_on_64_ints(never_released, 2, 64)},
    {"divergent_warp", Build::any, "deadlock", run_on_64_ints(different_collectives, 2, 32)},
    {"uninitialised_shared", Build::check, "uninitialised", run_on_64_ints(shared_read_before_write, 1, 64)},
    {"uninitialised_global", Build::check, "uninitialised", read_uninitialised_memory},
    {"no_syncwarp", Build::check, "uninitialised", run_on_64_ints(no_syncwarp, 1, 32)},
    {"vote_is_no_fence", Build::check, "race", run_on_64_ints(vote_is_no_fence, 1, 32)},
    {"dynamic_overrun", Build::check, "outside device memory", run_on_64_ints(dynamic_shared_overrun, 1, 32)},
    {"lost_update", Build::check, "race", run_on_64_ints(lost_update, 2, 32)},
    {"host_pointer", Build::check, "outside device memory", read_host_memory},
    {"vector_overrun", Build::check, "past the end", copy_floats(0, 10, 3)},
    {"misaligned_vector", Build::check, "misaligned", copy_floats(1, 16, 1)},
    {"freed_memory", Build::check, "outside device memory", read_freed_memory},
    {"other_device", Build::check, "another device's memory", read_memory_of_another_device},
    {"overrun_found_when_freed", Build::any, "past the end of an allocation", copy_floats(0, 10, 3)},
};

class SeededBugs : public testing::TestWithParam<SeededBug> {
 protected:
  void SetUp() override {
    before_ = options();
    options().watchdog = 300'000;
  }
  void TearDown() override { options() = before_; }

 private:
  Options before_;
};

TEST_P(SeededBugs, AreReported) {
  const SeededBug& bug = GetParam();
  if (bug.found_by == Build::check && !checks_accesses()) GTEST_SKIP() << "found by the check build";
  bug.run();
  EXPECT_NE(take_report().find(bug.report), std::string::npos) << "expected: " << bug.report;
}

INSTANTIATE_TEST_SUITE_P(All, SeededBugs, testing::ValuesIn(seeded_bugs),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SeededBugs, AReportIsAnErrorOfEveryCallUntilItIsTaken) {
  run_on_64_ints(split_barrier, 1, 64)();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorLaunchFailure);
  EXPECT_NE(std::string(cudaGetErrorString(cudaErrorLaunchFailure)).find("divergent"), std::string::npos);
  EXPECT_NE(take_report(), "");
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(SeededBugs, AReportNamesTheLine) {
  if (!checks_accesses()) GTEST_SKIP() << "found by the check build";
  run_on_64_ints(lost_update, 2, 32)();
  EXPECT_NE(take_report().find("seeded_bugs_test.cu:"), std::string::npos);
}

}  // namespace
}  // namespace cuda_emulation
