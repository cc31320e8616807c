// Copies of rows between strides, also beyond the maximum pitch of CUDA.
#include "backend/cuda/rows/row_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "backend/cuda/cuda_test.h"
#include "support/device_array.h"

namespace nearwise {
namespace {

class RowCopy : public gpu::CudaTest {};

TEST_F(RowCopy, TakesRowsOutOfLongerOnes) {
  const std::vector<float> source = {1, 2, 3, -1, 4, 5, 6, -1, 7, 8, 9};
  for (const std::size_t rows : {1U, 2U, 3U}) {
    support::DeviceArray<float> device(rows * 3);
    gpu::copy_rows<float>(nullptr, device.data(), 3, source.data(), 4, 3, rows, cudaMemcpyHostToDevice,
                          "test");
    gpu::check(cudaStreamSynchronize(nullptr), "test");
    std::vector<float> expected = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    expected.resize(rows * 3);
    EXPECT_EQ(device.to_host(), expected);
  }
}

TEST_F(RowCopy, RowsMayLieFurtherApartThanAPitch) {
  // Reserves address space only: three pages are touched.
  const std::size_t stride = gpu::max_pitch / sizeof(float) + 1024;
  const std::size_t bytes = (2 * stride + 1024) * sizeof(float);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const source = static_cast<float*>(memory);
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t col = 0; col < 2; ++col) source[row * stride + col] = static_cast<float>(10 * row + col);
  support::DeviceArray<float> device(6);
  gpu::copy_rows<float>(nullptr, device.data(), 2, source, stride, 2, 3, cudaMemcpyHostToDevice, "test");
  gpu::check(cudaStreamSynchronize(nullptr), "test");
  EXPECT_EQ(device.to_host(), (std::vector<float>{0, 1, 10, 11, 20, 21}));
  ::munmap(memory, bytes);
}

}  // namespace
}  // namespace nearwise
