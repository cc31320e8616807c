#include "backend/cuda/device/device_buffer.h"

#include <limits>
#include <optional>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/device/host_results.h"

namespace nearwise::gpu {
namespace {

using DeviceBufferTest = CudaTest;

TEST_F(DeviceBufferTest, IsCountedOnTheBudget) {
  const Context context = Context::cuda(0, {.memory_limit = 1 << 20});
  const CudaStream stream(context.state());
  {
    const DeviceBuffer<float> buffer(stream, 1000, "test");
    EXPECT_EQ(buffer.size(), 1000u);
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_EQ(context.memory_used(), 4096u);  // 4000 rounded to 256
    const DeviceBuffer<char> one(stream, 1, "test");
    EXPECT_EQ(context.memory_used(), 4096u + 256u);
  }
  EXPECT_EQ(context.memory_used(), 0u);
  EXPECT_EQ(context.memory_peak(), 4096u + 256u);
}

TEST_F(DeviceBufferTest, KeepsTheLimit) {
  const Context context = Context::cuda(0, {.memory_limit = 10'000});
  const CudaStream stream(context.state());
  const DeviceBuffer<char> most(stream, 9000, "test");
  const Error error = error_of([&] { const DeviceBuffer<char> more(stream, 1001, "test"); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  EXPECT_EQ(context.memory_used(), 9216u);
}

TEST_F(DeviceBufferTest, NothingIsAllocatedForNoElements) {
  const Context context = Context::cuda(0);
  const CudaStream stream(context.state());
  const DeviceBuffer<float> none(stream, 0, "test");
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(context.memory_used(), 0u);
}

TEST_F(DeviceBufferTest, MovesWithItsMemory) {
  const Context context = Context::cuda(0);
  const CudaStream stream(context.state());
  DeviceBuffer<int> first(stream, 100, "test");
  int* const data = first.data();
  DeviceBuffer<int> second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);
  DeviceBuffer<int> third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(context.memory_used(), 512u);
}

TEST_F(DeviceBufferTest, MoreThanTheDeviceHasIsAnErrorThatNamesIt) {
  const Context context = Context::cuda(0);
  const CudaStream stream(context.state());
  const Error error =
      error_of([&] { const DeviceBuffer<char> all(stream, std::size_t{1} << 46, "large test"); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  EXPECT_STREQ(error.what(), "large test: cuda:0: out of memory (cudaErrorMemoryAllocation)");
  EXPECT_EQ(context.memory_used(), 0u);
}

TEST_F(DeviceBufferTest, SizesThatDoNotFitAreRefused) {
  const Context context = Context::cuda(0);
  const CudaStream stream(context.state());
  for (const std::size_t size :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 4}) {
    const Error error = error_of([&] { const DeviceBuffer<int> none(stream, size, "test"); });
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << size;
  }
  EXPECT_EQ(context.memory_used(), 0u);
}

TEST_F(DeviceBufferTest, MayOutliveItsStream) {
  const Context context = Context::cuda(0);
  const std::vector<int> written = {3, 1, 2};
  DeviceBuffer<int> buffer;
  {
    const CudaStream stream(context.state());
    buffer = DeviceBuffer<int>(stream, written.size(), "test");
    copy_to_device<int>(stream, written, buffer.data(), "test");
    stream.synchronize("test");
  }
  const CudaStream another(context.state());
  std::vector<int> read(written.size());
  fetch<int>(another, buffer.data(), read, "test");
  EXPECT_EQ(read, written);
}

TEST_F(DeviceBufferTest, StreamsOfAllDevicesCanBeOpenAtOnce) {
  const int count = cuda_backend()->device_count();
  std::vector<Context> contexts;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<DeviceBuffer<int>> buffers;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    contexts.push_back(Context::cuda(ordinal));
    streams.push_back(cuda_backend()->open(contexts.back().state()));
    const CudaStream& stream = cuda_stream(*streams.back());
    buffers.emplace_back(stream, 1, "test");
    copy_to_device<int>(stream, std::vector<int>{ordinal}, buffers.back().data(), "test");
  }
  for (int ordinal = count - 1; ordinal >= 0; --ordinal) {
    const auto index = static_cast<std::size_t>(ordinal);
    const CudaStream& stream = cuda_stream(*streams[index]);
    EXPECT_EQ(stream.ordinal(), ordinal);
    std::vector<int> read(1);
    fetch<int>(stream, buffers[index].data(), read, "test");
    EXPECT_EQ(read[0], ordinal);
  }
}

}  // namespace
}  // namespace nearwise::gpu
