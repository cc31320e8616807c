#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/gpu.h"
#include "backend/cuda/device/host_results.h"

namespace nearwise::gpu {
namespace {

using Launch = CudaTest;

__global__ void add_scaled(const float* x, float scale, int size, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) y[i] = y[i] + scale * x[i];
}

// Uses dynamic shared memory, so that a wrong size is detected.
__global__ void reverse(float* values, int size) {
  float* const kept = dynamic_shared<float>();
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x))
    kept[i] = values[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x))
    values[i] = kept[size - 1 - i];
}

std::vector<float> counted(std::size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::vector<float> reversed_on(const Context& context, std::size_t size) {
  const CudaStream stream(context.state());
  const DeviceScope scope(stream.ordinal());
  std::vector<float> values = counted(size);
  DeviceBuffer<float> buffer(stream, size, "test");
  copy_to_device<float>(stream, values, buffer.data(), "test");
  launch(reverse, dim3(1), dim3(64), size * sizeof(float), stream.handle(), buffer.data(), size);
  fetch<float>(stream, buffer.data(), values, "test");
  return values;
}

TEST_F(Launch, RunsOnEveryDeviceInTheOrderOfTheStream) {
  for (int ordinal = 0; ordinal < cuda_backend()->device_count(); ++ordinal) {
    const Context context = Context::cuda(ordinal);
    const CudaStream stream(context.state());
    const DeviceScope scope(ordinal);
    const std::vector<float> x = counted(1000);
    std::vector<float> y(1000, 1.0f);
    DeviceBuffer<float> device_x(stream, x.size(), "test"), device_y(stream, y.size(), "test");
    copy_to_device<float>(stream, x, device_x.data(), "test");
    copy_to_device<float>(stream, y, device_y.data(), "test");
    // Arguments are converted to the kernel's parameter types: 1000 becomes a size_t.
    launch(add_scaled, dim3(8), dim3(128), 0, stream.handle(), device_x.data(), 2.0, x.size(),
           device_y.data());
    fetch<float>(stream, device_y.data(), y, "test");
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 1.0f + 2.0f * static_cast<float>(i));
  }
}

TEST_F(Launch, GivesDynamicSharedMemoryBeyond48Kilobytes) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{15'000}}) {
    std::vector<float> expected = counted(size);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(reversed_on(Context::cuda(0), size), expected);
  }
}

TEST_F(Launch, NamesOperationAndDeviceWhereItCannotStart) {
  const Context context = Context::cuda(0);
  const CudaStream stream(context.state());
  const DeviceScope scope(0);
  const auto message = [&](unsigned threads, std::size_t shared_bytes) {
    const Error error =
        error_of([&] { launch(reverse, dim3(1), dim3(threads), shared_bytes, stream.handle(), nullptr, 0); });
    EXPECT_EQ(error.code(), ErrorCode::device);
    return std::string(error.what());
  };
  EXPECT_EQ(message(2048, 0),
            "kernel launch: cuda:0: invalid configuration argument (cudaErrorInvalidConfiguration)");
  EXPECT_EQ(message(32, 10'000'000), "kernel launch: cuda:0: invalid argument (cudaErrorInvalidValue)");
  // The error was cleared: the next call does not return it.
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace nearwise::gpu
