// cuBLAS replacement: products of every layout, with the rounding of the compute type.
#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "cuda_emulation/control.h"
#include "support/device_array.h"

namespace cuda_emulation {
namespace {

using nearwise::support::DeviceArray;

class Cublas : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS); }
  void TearDown() override { EXPECT_EQ(cublasDestroy(handle_), CUBLAS_STATUS_SUCCESS); }

  // The product of two scalars.
  float product(float a, float b, cublasComputeType_t compute) { return dot({a}, {b}, compute); }

  float dot(const std::vector<float>& a, const std::vector<float>& b, cublasComputeType_t compute) {
    const DeviceArray<float> device_a(a), device_b(b), out(1);
    const float one = 1, zero = 0;
    const int depth = static_cast<int>(a.size());
    EXPECT_EQ(cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, depth, &one, device_a.data(), CUDA_R_32F,
                           depth, device_b.data(), CUDA_R_32F, depth, &zero, out.data(), CUDA_R_32F, 1,
                           compute, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    return out.to_host()[0];
  }

  cublasHandle_t handle_ = nullptr;
};

std::vector<float> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST_F(Cublas, SgemmOfEveryLayout) {
  constexpr int m = 5, n = 7, k = 33, leading = 40;
  const std::vector<float> a = random_numbers(leading * leading, 1), b = random_numbers(leading * leading, 2);
  const std::vector<float> c = random_numbers(leading * n, 3);
  const float alpha = -2, beta = 0.5f;
  for (const cublasOperation_t a_form : {CUBLAS_OP_N, CUBLAS_OP_T})
    for (const cublasOperation_t b_form : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      const DeviceArray<float> device_a(a), device_b(b), device_c(c);
      ASSERT_EQ(cublasSgemm(handle_, a_form, b_form, m, n, k, &alpha, device_a.data(), leading,
                            device_b.data(), leading, &beta, device_c.data(), leading),
                CUBLAS_STATUS_SUCCESS);
      const std::vector<float> found = device_c.to_host();
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) {
          double sum = 0;
          for (int p = 0; p < k; ++p)
            sum += double{a_form == CUBLAS_OP_N ? a[p * leading + i] : a[i * leading + p]} *
                   double{b_form == CUBLAS_OP_N ? b[j * leading + p] : b[p * leading + j]};
          ASSERT_NEAR(found[j * leading + i], alpha * sum + beta * c[j * leading + i], 1e-4);
        }
    }
}

// 1 + 2^-11 has one bit more than TF32, 1 + 2^-8 one more than bf16.
TEST_F(Cublas, InputsAreRoundedAsTheFormatHasThem) {
  const float beyond_tf32 = 1 + 0x1p-11f, within_tf32 = 1 + 0x1p-10f, beyond_bf16 = 1 + 0x1p-8f;
  EXPECT_EQ(product(beyond_tf32, 1, CUBLAS_COMPUTE_32F), beyond_tf32);
  EXPECT_EQ(product(beyond_tf32, 1, CUBLAS_COMPUTE_32F_FAST_TF32), 1);
  EXPECT_EQ(product(1, beyond_tf32, CUBLAS_COMPUTE_32F_FAST_TF32), 1);
  EXPECT_EQ(product(within_tf32, 1, CUBLAS_COMPUTE_32F_FAST_TF32), within_tf32);
  EXPECT_EQ(product(beyond_bf16, 1, CUBLAS_COMPUTE_32F_FAST_16BF), 1);
  EXPECT_EQ(product(1 + 3 * 0x1p-8f, 1, CUBLAS_COMPUTE_32F_FAST_16BF), 1 + 4 * 0x1p-8f);
}

TEST_F(Cublas, TheMathModeOfAHandleCounts) {
  const float one = 1, zero = 0;
  const DeviceArray<float> a(std::vector<float>{1 + 0x1p-11f}), b(std::vector<float>{1}), out(1);
  ASSERT_EQ(cublasSetMathMode(handle_, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data(), 1, b.data(), 1, &zero,
                        out.data(), 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(out.to_host()[0], 1);
}

// 1 + 0.75 ulp is 1 + 1 ulp when rounded to nearest.
TEST_F(Cublas, TensorCoresDropWhatDoesNotFitWhenTheyAdd) {
  const float a = 1, small = 0x1.8p-24f;
  EXPECT_EQ(dot({a, small}, {1, 1}, CUBLAS_COMPUTE_32F), 1 + 0x1p-23f);
  EXPECT_EQ(dot({a, small}, {1, 1}, CUBLAS_COMPUTE_32F_FAST_TF32), 1);
  EXPECT_EQ(dot({-a, -small}, {1, 1}, CUBLAS_COMPUTE_32F_FAST_TF32), -1);
}

TEST_F(Cublas, Bfloat16Inputs) {
  const auto to_bfloat16 = [](float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  };
  const DeviceArray<std::uint16_t> a(std::vector<std::uint16_t>{to_bfloat16(1.5f), to_bfloat16(-2.0f)});
  const DeviceArray<std::uint16_t> b(std::vector<std::uint16_t>{to_bfloat16(4.0f), to_bfloat16(0.25f)});
  const DeviceArray<float> out(1);
  const float one = 1, zero = 0;
  ASSERT_EQ(
      cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 2, &one, a.data(), CUDA_R_16BF, 2, b.data(),
                   CUDA_R_16BF, 2, &zero, out.data(), CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(out.to_host()[0], 5.5f);
}

TEST_F(Cublas, RunsInTheOrderOfItsStream) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cublasSetStream(handle_, stream), CUBLAS_STATUS_SUCCESS);
  const float one = 1, zero = 0;
  const DeviceArray<float> a(std::vector<float>{3}), b(std::vector<float>{2}), out(std::vector<float>{-1});
  ASSERT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data(), 1, b.data(), 1, &zero,
                        out.data(), 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(out.to_host()[0], -1) << "the stream was not synchronised";
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(out.to_host()[0], 6);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(Cublas, WorkspacesAreOfOneStream) {
  const float one = 1, zero = 0;
  const DeviceArray<float> a(std::vector<float>{3}), b(std::vector<float>{2}), out(std::vector<float>{-1});
  const DeviceArray<int> workspace(std::vector<int>(64, 5));
  const auto multiply = [&] {
    EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data(), 1, b.data(), 1, &zero,
                          out.data(), 1),
              CUBLAS_STATUS_SUCCESS);
  };
  float host = 0;
  EXPECT_EQ(cublasSetWorkspace(handle_, &host, 4), CUBLAS_STATUS_INVALID_VALUE) << "on the host";
  EXPECT_EQ(cublasSetWorkspace(handle_, workspace.data() + 1, 64), CUBLAS_STATUS_INVALID_VALUE) << "aligned";
  ASSERT_EQ(cublasSetWorkspace(handle_, workspace.data(), 128), CUBLAS_STATUS_SUCCESS);
  multiply();
  std::vector<int> expected(64, 5);
  std::fill_n(expected.begin(), 32, -1);
  EXPECT_EQ(workspace.to_host(), expected) << "written";
  EXPECT_EQ(out.to_host()[0], 6);
  ASSERT_EQ(cublasSetWorkspace(handle_, workspace.data(), 260), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream(handle_, nullptr), CUBLAS_STATUS_SUCCESS);
  multiply();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "setting the stream ends the use of the workspace";
  ASSERT_EQ(cublasSetWorkspace(handle_, workspace.data(), 260), CUBLAS_STATUS_SUCCESS);
  multiply();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress) << "longer than its allocation";
  EXPECT_NE(take_report().find("cuBLAS workspace"), std::string::npos);
}

TEST_F(Cublas, MatricesMustLieInTheirAllocations) {
  const float one = 1, zero = 0;
  const DeviceArray<float> a(std::vector<float>(6)), b(std::vector<float>(6)), out(4);
  ASSERT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 4, &one, a.data(), 2, b.data(), 4, &zero,
                        out.data(), 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_NE(take_report().find("cuBLAS"), std::string::npos);
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a.data(), 1, b.data(), 2, &zero,
                        out.data(), 2),
            CUBLAS_STATUS_INVALID_VALUE);
}

}  // namespace
}  // namespace cuda_emulation
