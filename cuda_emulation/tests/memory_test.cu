// Runtime replacement: device memory is unreadable by the host, stream-ordered, limited and accounted for.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "cuda_emulation/control.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

using nearwise::support::DeviceArray;

void* allocate(std::size_t bytes, cudaStream_t stream) {
  void* data = nullptr;
  EXPECT_EQ(cudaMallocAsync(&data, bytes, stream), cudaSuccess);
  return data;
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

// An allocation size that fits once but not twice.
std::size_t most_of_the_device() {
  std::size_t free_bytes = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  return total / 4 * 3;
}

TEST(Memory, TheHostCannotReadIt) {
  const DeviceArray<int> values(std::vector<int>(4, 1));
  EXPECT_EXIT({ std::_Exit(*const_cast<volatile int*>(values.data())); }, testing::KilledBySignal(SIGSEGV),
              "");
}

TEST(Memory, IsPoisonedAtFirst) {
  if (checks_accesses()) GTEST_SKIP() << "reading it is a finding there";
  EXPECT_EQ(DeviceArray<int>(3).to_host(), std::vector<int>(3, -1));
}

TEST(Memory, CopiesOfWhatNobodyWroteAreReported) {
  if (!checks_accesses()) GTEST_SKIP() << "found by the check build";
  const DeviceArray<int> never_written(4);
  std::vector<int> host(4);
  EXPECT_EQ(cudaMemcpy(host.data(), never_written.data(), 16, cudaMemcpyDeviceToHost),
            cudaErrorIllegalAddress);
  EXPECT_NE(take_report().find("uninitialised"), std::string::npos);
}

TEST(Memory, RunsOut) {
  std::size_t free_before = 0, total = 0, free_now = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_before, &total), cudaSuccess);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  const DeviceArray<char> half(total / 2);
  ASSERT_EQ(cudaMemGetInfo(&free_now, &total), cudaSuccess);
  EXPECT_EQ(free_now, free_before - total / 2);
  EXPECT_EQ(cudaMalloc(&data, total / 2 + 1), cudaErrorMemoryAllocation);
}

TEST(Memory, OfEachDeviceIsItsOwn) {
  std::size_t free_bytes = 0, total = 0;
  const DeviceArray<char> most(most_of_the_device());
  ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_EQ(free_bytes, total);
  { const DeviceArray<char> as_much(most_of_the_device()); }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(Memory, FreedInAStreamServesTheNextAllocation) {
  const cudaStream_t stream = new_stream();
  const std::size_t most = most_of_the_device();
  for (int i = 0; i < 3; ++i) {
    void* const data = allocate(most, stream);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(cudaFreeAsync(data, stream), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(Memory, OfAStreamIsNotThereForOthersBefore) {
  const cudaStream_t owner = new_stream(), other = new_stream();
  void* const data = allocate(64 * sizeof(int), owner);
  EXPECT_EQ(cudaMemsetAsync(data, 0, 64, other), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaErrorIllegalAddress);
  EXPECT_NE(take_report().find("not allocated at this point of the stream"), std::string::npos);
  EXPECT_EQ(cudaFreeAsync(data, owner), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(owner), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST(Memory, CannotBeUsedOrFreedTwice) {
  const cudaStream_t stream = new_stream();
  void* const data = allocate(64 * sizeof(int), stream);
  EXPECT_EQ(cudaFreeAsync(data, stream), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(data, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(data), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(data, 0, 4, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_NE(take_report(), "");
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  static_cast<void>(cudaGetLastError());
}

TEST(Memory, CopiesKeepToTheirAllocationAndDirection) {
  const DeviceArray<int> values(std::vector<int>(10, 1));
  std::vector<int> host(11);
  EXPECT_EQ(cudaMemcpy(host.data(), values.data(), 40, cudaMemcpyHostToDevice),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(host.data(), values.data(), 44, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
  EXPECT_NE(take_report().find("past the end"), std::string::npos);
}

TEST(Memory, RowsAreCopiedWithTheirPitch) {
  const DeviceArray<int> values(std::vector<int>{0, 1, 2, 3, 4, 5});
  std::vector<int> host(8, -1);
  ASSERT_EQ(cudaMemcpy2DAsync(host.data(), 16, values.data() + 1, 12, 8, 2, cudaMemcpyDeviceToHost, nullptr),
            cudaSuccess);
  EXPECT_EQ(host, (std::vector<int>{1, 2, -1, -1, 4, 5, -1, -1}));
}

TEST(Memory, PointersSayWhereTheyPoint) {
  const DeviceArray<int> values(4);
  const int local = 0;
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, values.data() + 1), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &local), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(Memory, OfAPoolIsCountedThere) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 1;
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  void* data = nullptr;
  ASSERT_EQ(cudaMallocFromPoolAsync(&data, 1000, pool, nullptr), cudaSuccess);
  std::uint64_t used = 0;
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
  EXPECT_EQ(used, 1000u);
  EXPECT_EQ(cudaMemPoolDestroy(pool), cudaErrorInvalidValue) << "it is in use";
  EXPECT_EQ(cudaFreeAsync(data, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
  static_cast<void>(cudaGetLastError());
}

TEST(Memory, AllocationsFailOnDemand) {
  void* data = nullptr;
  fail_allocation(2);
  { const DeviceArray<char> first(10); }
  EXPECT_EQ(cudaMalloc(&data, 10), cudaErrorMemoryAllocation);
  { const DeviceArray<char> third(10); }
  fail_allocation(1);
  EXPECT_EQ(cudaMallocHost(&data, 10), cudaErrorMemoryAllocation);
  static_cast<void>(cudaGetLastError());
}

TEST(Accounting, SeesWhatIsThere) {
  const cudaStream_t stream = new_stream();
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  void* const data = allocate(100, stream);
  EXPECT_EQ(
      accounting(),
      (Accounting{
          .device_bytes = 100, .device_allocations = 1, .pinned_allocations = 1, .streams = 1, .events = 1}));
  EXPECT_EQ(cudaFreeAsync(data, stream), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(accounting(), Accounting{});
}

// Leaked resources and unread findings make a program fail at exit.
TEST(Accounting, EndsAProgramThatLeaks) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        void* data = nullptr;
        static_cast<void>(cudaMalloc(&data, 100));
        std::exit(0);
      },
      testing::ExitedWithCode(1), "left at exit: 100 bytes in 1 device allocations");
  EXPECT_EXIT(
      {
        static_cast<void>(cudaMemsetAsync(allocate(4, nullptr), 0, 8, nullptr));
        std::exit(0);
      },
      testing::ExitedWithCode(1), "unread finding: fill past the end of an allocation");
  EXPECT_EXIT({ std::exit(accounting() == Accounting{} ? 0 : 2); }, testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cuda_emulation
