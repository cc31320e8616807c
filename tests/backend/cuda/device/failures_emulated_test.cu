// Every allocation and every kind of CUDA call fails in turn: a clean error and no leaks.
#include <string>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/gpu.h"
#include "backend/cuda/device/host_results.h"
#include "cuda_emulation/control.h"

namespace nearwise::gpu {
namespace {

using Failures = CudaTest;

__global__ void double_values(int* values, int size) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) values[i] = values[i] * 2;
}

__global__ void mismatched_barriers(int* values) {
  if (threadIdx.x == 0)
    __syncthreads();
  else
    values[threadIdx.x] = __syncthreads_or(1);
}

// A small example of every operation of the backend.
std::vector<int> doubled(const Context& context, std::vector<int> values) {
  const std::unique_ptr<Stream> opened = cuda_backend()->open(context.state());
  const CudaStream& stream = cuda_stream(*opened);
  const DeviceScope scope(stream.ordinal());
  const int size = static_cast<int>(values.size());
  DeviceBuffer<int> first(stream, values.size(), "doubling"), second(stream, values.size(), "doubling");
  copy_to_device<int>(stream, values, first.data(), "doubling");
  launch(double_values, dim3(1), dim3(64), 0, stream.handle(), first.data(), size);
  check(cudaMemcpyAsync(second.data(), first.data(), values.size() * sizeof(int), cudaMemcpyDeviceToDevice,
                        stream.handle()),
        "doubling");
  fetch<int>(stream, second.data(), values, "doubling");
  return values;
}

const std::vector<int> given = {1, 2, 3};
const std::vector<int> expected = {2, 4, 6};

TEST_F(Failures, EveryAllocationInTurn) {
  const Context context = Context::cuda(1);
  const std::uint64_t before = cuda_emulation::allocations();
  EXPECT_EQ(doubled(context, given), expected);
  const std::uint64_t allocations = cuda_emulation::allocations() - before;
  ASSERT_EQ(allocations, 3u) << "two buffers, and pinned memory";
  for (std::uint64_t which = 1; which <= allocations; ++which) {
    release_kept();
    cuda_emulation::fail_allocation(which);
    const Error error = error_of([&] { doubled(context, given); });
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << which;
    EXPECT_STREQ(error.what(), "doubling: cuda:1: out of memory (cudaErrorMemoryAllocation)");
    release_kept();
    EXPECT_EQ(cuda_emulation::accounting(), cuda_emulation::Accounting{});
    EXPECT_EQ(context.memory_used(), 0u);
    EXPECT_EQ(doubled(context, given), expected) << "the next call works again";
  }
}

TEST_F(Failures, EveryCallInTurn) {
  const Context context = Context::cuda(2);
  EXPECT_EQ(doubled(context, given), expected);
  for (const char* call : {"cudaSetDevice", "cudaStreamCreateWithFlags", "cudaMallocFromPoolAsync",
                           "cudaMemcpyAsync", "cudaLaunchKernelEx", "cudaStreamSynchronize"}) {
    release_kept();
    cuda_emulation::fail_call(call, cudaErrorLaunchFailure);
    const Error error = error_of([&] { doubled(context, given); });
    EXPECT_EQ(error.code(), ErrorCode::device) << call;
    EXPECT_NE(std::string(error.what()).find("unspecified launch failure (cudaErrorLaunchFailure)"),
              std::string::npos)
        << call << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find("cuda:2"), std::string::npos) << call << ": " << error.what();
    release_kept();
    EXPECT_EQ(cuda_emulation::accounting(), cuda_emulation::Accounting{}) << call;
    EXPECT_EQ(context.memory_used(), 0u) << call;
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0) << "the application's device is left as it was, after " << call;
    EXPECT_EQ(doubled(context, given), expected) << "the next call works again, after " << call;
  }
}

TEST_F(Failures, OfAKernelShowWhenItIsWaitedFor) {
  const Context context = Context::cuda(1);
  const CudaStream stream(context.state());
  const DeviceScope scope(1);
  DeviceBuffer<int> values(stream, 64, "test");
  launch(mismatched_barriers, dim3(1), dim3(64), 0, stream.handle(), values.data());
  const Error error = error_of([&] { stream.synchronize("waiting"); });
  EXPECT_EQ(error.code(), ErrorCode::device);
  const std::string message = error.what();
  EXPECT_TRUE(message.starts_with("waiting: cuda:1: unspecified launch failure: ")) << message;
  EXPECT_NE(message.find("divergent __syncthreads"), std::string::npos) << message;
  EXPECT_NE(cuda_emulation::take_report(), "");
}

TEST_F(Failures, ANewPoolThatCannotBeMadeIsTriedAgain) {
  // In a new process, since pools are created once.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        cuda_emulation::fail_call("cudaMemPoolSetAttribute", cudaErrorInvalidValue);
        const Context context = Context::cuda(1);
        const auto open = [&] { return CudaStream(context.state()).handle(); };
        const Error error = error_of([&] { open(); });
        const bool refused = std::string(error.what()).starts_with("memory pool: cuda:1: invalid argument");
        std::_Exit(refused && open() != nullptr ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(FailuresWithoutDevice, AMachineWithoutADriverHasNoDevices) {
  for (const cudaError_t status : {cudaErrorNoDevice, cudaErrorInsufficientDriver}) {
    cuda_emulation::fail_call("cudaGetDeviceCount", status);
    EXPECT_EQ(cuda_backend()->device_count(), 0);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the application does not see our question";
  }
  cuda_emulation::fail_call("cudaGetDeviceCount", cudaErrorLaunchFailure);
  EXPECT_EQ(error_of([] { cuda_backend()->device_count(); }).code(), ErrorCode::device);
}

TEST(FailuresWithoutDevice, TheDeviceSaysThatItIsEmulated) {
  EXPECT_TRUE(cuda_backend()->device_model(0).starts_with("emulated device, compute capability 9.0, "));
}

}  // namespace
}  // namespace nearwise::gpu
