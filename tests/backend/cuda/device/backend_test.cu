#include "backend/backend.h"

#include <algorithm>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "nearwise/cuda_device.h"
#include "nearwise/exact.h"
#include "nearwise/machine.h"
#include "nearwise/matrix.h"

namespace nearwise::gpu {
namespace {

using CudaBackend = CudaTest;

TEST_F(CudaBackend, ContextIsOnItsDevice) {
  const int count = cuda_backend()->device_count();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const Context context = Context::cuda(ordinal, {.memory_limit = 1 << 20});
    EXPECT_EQ(context.place(), (Place{DeviceKind::cuda, ordinal}));
    EXPECT_EQ(context.memory_limit(), 1u << 20);
    EXPECT_EQ(Context::on("cuda:" + std::to_string(ordinal)).place(), context.place());
  }
}

TEST_F(CudaBackend, DevicesAreListedBehindTheCpu) {
  const std::vector<DeviceInfo> found = devices();
  ASSERT_EQ(found.size(), static_cast<std::size_t>(1 + cuda_backend()->device_count()));
  EXPECT_EQ(found[0].name, "cpu");
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, "cuda:" + std::to_string(i - 1));
    EXPECT_NE(found[i].model.find("compute capability"), std::string::npos) << found[i].model;
  }
}

TEST_F(CudaBackend, InstructionSetsAreForTheCpu) {
  const Error error = error_of([] { Context::cuda(0, {.isa = "avx2"}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_STREQ(error.what(), "context: isa of a CUDA device must be f32, tf32 or bf16, got 'avx2'");
}

TEST_F(CudaBackend, OperationsItLacksAreNamed) {
  const std::vector<float> values = {1, 2, 3, 4};
  const MatrixView<const float> rows(values.data(), 2, 2);
  const Error error = error_of([&] { range_search(Context::cuda(0), rows, rows, 1); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_NE(std::string(error.what()).find("the cuda backend does not implement it"), std::string::npos)
      << error.what();
}

TEST_F(CudaBackend, TheDriverTellsOfItsDevices) {
  const CudaDriver driver = cuda_driver();
  EXPECT_EQ(driver.problem, "");
  EXPECT_GE(driver.driver_version / 1000, driver.runtime_version / 1000);
  const CudaDevice device = cuda_device(0);
  EXPECT_GE(device.compute_capability, 75);
  EXPECT_GE(device.code_version, 75);
  EXPECT_GT(device.multiprocessors, 0);
  EXPECT_LE(device.free_bytes, device.memory_bytes);
  EXPECT_EQ(error_of([] { cuda_device(cuda_backend()->device_count()); }).code(), ErrorCode::device);
}

TEST_F(CudaBackend, CallsOfOperationsAreCounted) {
  const auto calls_of = [](const std::string& name) {
    const std::vector<OperationCalls> counted = cuda_operation_calls();
    const auto found = std::ranges::find(counted, name, &OperationCalls::name);
    return found == counted.end() ? 0 : found->calls;
  };
  const std::vector<float> values = {1, 2, 3, 4};
  const MatrixView<const float> rows(values.data(), 2, 2);
  const std::uint64_t before = calls_of("knn_block");
  const std::uint64_t others = calls_of("rotate");
  knn(Context::cuda(0), rows, rows, 1);
  EXPECT_GT(calls_of("knn_block"), before);
  EXPECT_EQ(calls_of("rotate"), others);
  EXPECT_EQ(cuda_operation_calls().size(), devices()[1].operations.size());
}

// Of sizes around those of a row and a piece of the pinned memory.
TEST_F(CudaBackend, CopiesHoldTheBytes) {
  for (const std::size_t size : {1, 4095, 4096, 4097, (8 << 20) - 1, (8 << 20) + 5000, (24 << 20) + 1}) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
    const DeviceCopy copy(Context::cuda(0), bytes);
    std::vector<std::byte> found(size);
    check(cudaMemcpy(found.data(), copy.data(), size, cudaMemcpyDeviceToHost), "test");
    EXPECT_EQ(found, bytes) << size;
  }
  const std::vector<std::byte> bytes(1 << 20);
  EXPECT_EQ(error_of([&] { DeviceCopy(Context::cuda(0, {.memory_limit = 1000}), bytes); }).code(),
            ErrorCode::out_of_memory);
  EXPECT_EQ(error_of([&] { DeviceCopy(Context::cpu(), bytes); }).code(), ErrorCode::unsupported);
}

// Also on a machine without any device.
TEST(CudaBackendWithoutDevice, DevicesBeyondTheLastAreRefused) {
  for (const int ordinal : {-1, cuda_backend()->device_count()}) {
    const Error error = error_of([&] { Context::cuda(ordinal); });
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("devices here: cpu"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nearwise::gpu
