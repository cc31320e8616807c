// Runtime replacement: queued work runs only when something waits for it, so missing synchronisation is
// always found.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "backend/cuda/device/gpu.h"
#include "cuda_emulation/control.h"
#include "nearwise/error.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

using nearwise::gpu::launch;
using nearwise::support::DeviceArray;

constexpr int size = 64;
constexpr std::size_t bytes = size * sizeof(int);

__global__ void add(const int* from, int amount, int* to) { to[threadIdx.x] = from[threadIdx.x] + amount; }

class TestStream {
 public:
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
  }
  ~TestStream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class TestEvent {
 public:
  TestEvent() { EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess); }
  ~TestEvent() { EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class PinnedInts {
 public:
  PinnedInts() { EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&data_), bytes), cudaSuccess); }
  ~PinnedInts() { EXPECT_EQ(cudaFreeHost(data_), cudaSuccess); }
  PinnedInts(const PinnedInts&) = delete;
  PinnedInts& operator=(const PinnedInts&) = delete;
  int* data() const { return data_; }

 private:
  int* data_ = nullptr;
};

TEST(Streams, WorkRunsWhenItIsWaitedFor) {
  const TestStream stream;
  const DeviceArray<int> values(std::vector<int>(size, 1));
  const PinnedInts host;
  host.data()[0] = -5;
  launch(add, dim3(1), dim3(size), 0, stream, values.data(), 2, values.data());
  ASSERT_EQ(cudaMemcpyAsync(host.data(), values.data(), bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(host.data()[0], -5) << "not synchronised yet";
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(host.data()[0], 3);
}

TEST(Streams, PageableMemoryIsReadAtTheCallAndWrittenBeforeItReturns) {
  if (options().late_copies) GTEST_SKIP() << "reads it late, and reports this";
  const TestStream stream;
  const DeviceArray<int> values(size);
  std::vector<int> host(size, 7);
  ASSERT_EQ(cudaMemcpyAsync(values.data(), host.data(), bytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
  host.assign(size, 0);
  ASSERT_EQ(cudaMemcpyAsync(host.data(), values.data(), bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(host, std::vector<int>(size, 7));
}

// One stream writes, another copies to the host, with or without an event between them.
bool is_right_with_two_streams(bool with_event) {
  const TestStream writer, reader;
  const TestEvent written;
  const DeviceArray<int> from(std::vector<int>(size, 1)), to(std::vector<int>(size, 0));
  const PinnedInts host;
  launch(add, dim3(1), dim3(size), 0, writer, from.data(), 4, to.data());
  EXPECT_EQ(cudaEventRecord(written, writer), cudaSuccess);
  if (with_event) EXPECT_EQ(cudaStreamWaitEvent(reader, written, 0), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), to.data(), bytes, cudaMemcpyDeviceToHost, reader), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(reader), cudaSuccess);
  return host.data()[0] == 5;
}

TEST(Streams, AMissingEventShows) {
  EXPECT_TRUE(is_right_with_two_streams(true));
  EXPECT_FALSE(is_right_with_two_streams(false));
}

TEST(Streams, BlockingOnesAreOrderedWithTheLegacyStream) {
  const TestStream blocking(cudaStreamDefault);
  const DeviceArray<int> values(std::vector<int>(size, 1));
  const PinnedInts host;
  launch(add, dim3(1), dim3(size), 0, blocking, values.data(), 2, values.data());
  ASSERT_EQ(cudaMemcpyAsync(host.data(), values.data(), bytes, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(host.data()[0], 3);
}

TEST(Streams, EventsCanBeWaitedForByTheHost) {
  const TestStream stream;
  const TestEvent first;
  const PinnedInts host;
  const DeviceArray<int> values(std::vector<int>(size, 1)), more(std::vector<int>(size, 9));
  ASSERT_EQ(cudaMemcpyAsync(host.data(), values.data(), bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(first, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(host.data(), more.data(), bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(first), cudaSuccess);
  EXPECT_EQ(host.data()[0], 1);
}

TEST(Streams, WorkOfADestroyedOneStillRuns) {
  const DeviceArray<int> values(std::vector<int>(size, 1));
  {
    const TestStream stream;
    launch(add, dim3(1), dim3(size), 0, stream, values.data(), 1, values.data());
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(values.to_host(), std::vector<int>(size, 2));
}

TEST(Streams, BelongToADevice) {
  const TestStream stream;
  const DeviceArray<int> values(std::vector<int>(size, 1));
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_THROW(launch(add, dim3(1), dim3(size), 0, stream, values.data(), 1, values.data()), nearwise::Error);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(Streams, OneHostThreadPerDevice) {
  std::vector<std::vector<int>> found(3);
  std::vector<std::thread> threads;
  for (int device = 0; device < 3; ++device)
    threads.emplace_back([device, &found] {
      EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
      const TestStream stream;
      const DeviceArray<int> values(std::vector<int>(size, device));
      for (int i = 0; i < 20; ++i)
        launch(add, dim3(1), dim3(size), 0, stream, values.data(), 1, values.data());
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      found[static_cast<std::size_t>(device)] = values.to_host();
    });
  for (std::thread& thread : threads) thread.join();
  for (int device = 0; device < 3; ++device)
    EXPECT_EQ(found[static_cast<std::size_t>(device)], std::vector<int>(size, device + 20));
}

}  // namespace
}  // namespace cuda_emulation
