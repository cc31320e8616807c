// Calls, bytes, waits and growth of pools are counted as CUDA defines them.
#include "cuda_emulation/call_counts.h"

#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "backend/cuda/device/gpu.h"
#include "cuda_emulation/control.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

__global__ void write_index(int* out) { out[threadIdx.x] = static_cast<int>(threadIdx.x); }

TEST(CallCounts, AreByName) {
  reset_call_counts();
  cudaStream_t stream = nullptr;
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream_v2(handle, stream), CUBLAS_STATUS_SUCCESS);
  void* data = nullptr;
  ASSERT_EQ(cudaMallocAsync(&data, 256, stream), cudaSuccess);
  nearwise::gpu::launch(write_index, dim3(1), dim3(32), 0, stream, static_cast<int*>(data));
  nearwise::gpu::launch(write_index, dim3(1), dim3(32), 0, stream, static_cast<int*>(data));
  ASSERT_EQ(cudaFreeAsync(data, stream), cudaSuccess);
  ASSERT_EQ(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  const CallCounts counts = call_counts();
  EXPECT_EQ(counts.calls, (std::map<std::string, std::uint64_t>{{"cudaStreamCreateWithFlags", 1},
                                                                {"cublasCreate", 1},
                                                                {"cublasSetStream", 1},
                                                                {"cudaMallocAsync", 1},
                                                                {"cudaLaunchKernelEx", 2},
                                                                {"cudaFreeAsync", 1},
                                                                {"cublasDestroy", 1},
                                                                {"cudaStreamDestroy", 1}}));
  EXPECT_EQ(counts.launches(), 2u);
  EXPECT_EQ(counts.device_allocations(), 1u);
  EXPECT_EQ(counts.stream_creations(), 1u);
  EXPECT_EQ(counts.handle_creations(), 1u);
  EXPECT_EQ(counts.synchronisations, 0u);
  reset_call_counts();
  EXPECT_TRUE(call_counts().calls.empty());
  EXPECT_EQ(accounting(), Accounting{});
}

TEST(CallCounts, FailedCallsCount) {
  reset_call_counts();
  fail_call("cudaStreamCreateWithFlags", cudaErrorLaunchFailure);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreate(&stream), cudaErrorLaunchFailure);
  EXPECT_EQ(call_counts().stream_creations(), 1u);
  static_cast<void>(cudaGetLastError());
}

TEST(CallCounts, PageableAndPinnedBytesAreApart) {
  const nearwise::support::DeviceArray<char> device(100);
  std::vector<char> pageable(100);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
  reset_call_counts();
  ASSERT_EQ(cudaMemcpyAsync(device.data(), pageable.data(), 100, cudaMemcpyHostToDevice, nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device.data(), pinned, 20, cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, device.data(), 30, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device.data(), device.data() + 50, 50, cudaMemcpyDeviceToDevice, nullptr),
            cudaSuccess);
  EXPECT_EQ(call_counts().synchronisations, 0u);
  // The pitch is not copied.
  ASSERT_EQ(cudaMemcpy2DAsync(pageable.data(), 16, device.data(), 8, 2, 3, cudaMemcpyDeviceToHost, nullptr),
            cudaSuccess);
  const CallCounts counts = call_counts();
  EXPECT_EQ(counts.pageable_to_device, 100u);
  EXPECT_EQ(counts.pinned_to_device, 20u);
  EXPECT_EQ(counts.device_to_pinned, 30u);
  EXPECT_EQ(counts.device_to_pageable, 6u);
  EXPECT_EQ(counts.synchronisations, 1u) << "a copy to pageable memory waits";
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(CallCounts, EveryWaitIsASynchronisation) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 4), cudaSuccess);
  reset_call_counts();
  int host = 0;
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(call_counts().synchronisations, 3u);
  ASSERT_EQ(cudaMemcpy(data, &host, 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(call_counts().synchronisations, 3u) << "may return before the device has the bytes";
  ASSERT_EQ(cudaMemcpy(&host, data, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(call_counts().synchronisations, 4u);
  ASSERT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(call_counts().synchronisations, 5u);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
}

// CUDA compares the release threshold with all that a pool holds, live memory included.
TEST(CallCounts, APoolGrowsAgainForWhatItGaveBack) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  const auto set_threshold = [&](std::uint64_t bytes) {
    ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes), cudaSuccess);
  };
  // Bytes that a pool asks for to have 1000 bytes for a moment.
  const auto growth = [&] {
    reset_call_counts();
    void* data = nullptr;
    EXPECT_EQ(cudaMallocFromPoolAsync(&data, 1000, pool, nullptr), cudaSuccess);
    EXPECT_EQ(cudaFreeAsync(data, nullptr), cudaSuccess);
    EXPECT_EQ(call_counts().pool_growths, call_counts().pool_growth_bytes == 0 ? 0u : 1u);
    return call_counts().pool_growth_bytes;
  };
  set_threshold(1000);
  EXPECT_EQ(growth(), 1000u);
  EXPECT_EQ(growth(), 0u) << "freed in the order of the stream: it serves the next allocation";
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(growth(), 0u) << "up to the threshold";
  void* live = nullptr;
  ASSERT_EQ(cudaMallocFromPoolAsync(&live, 700, pool, nullptr), cudaSuccess);
  EXPECT_EQ(growth(), 700u);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(growth(), 700u) << "live memory is part of the threshold";
  set_threshold(1700);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(growth(), 0u);
  ASSERT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
  EXPECT_EQ(growth(), 1000u);
  std::uint64_t held = 0;
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &held), cudaSuccess);
  EXPECT_EQ(held, 1700u);
  ASSERT_EQ(cudaFreeAsync(live, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
}

}  // namespace
}  // namespace cuda_emulation
