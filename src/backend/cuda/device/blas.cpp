#include "backend/cuda/device/blas.h"

#include <algorithm>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "core/check.h"

namespace nearwise::gpu {
namespace {

ErrorCode code_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED: return ErrorCode::out_of_memory;
    // e.g. bf16 before compute capability 8.0
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED: return ErrorCode::unsupported;
    default: return ErrorCode::device;
  }
}

void check_blas(int ordinal, cublasStatus_t status, const char* operation) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(code_of(status), "{}: cuda:{}: cuBLAS: {}", operation, ordinal, cublasGetStatusString(status));
}

// Forbids the environment and later cuBLAS versions to choose lower precision: the error bound assumes the
// encoding.
cublasMath_t math_mode(Encoding encoding) {
  if (encoding == Encoding::f32) return CUBLAS_PEDANTIC_MATH;
  return static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
}

// What NVIDIA recommends: 32 MiB for compute capability 9.0 and later, else 4 MiB.
std::uint64_t recommended_bytes(int ordinal) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), "opening cuBLAS",
        ordinal);
  return std::uint64_t{major >= 9 ? 32U : 4U} << 20;
}

// Sums of the parts that cuBLAS splits long products into: of small results not more than this many are worth
// their memory.
constexpr std::uint64_t partial_sums = 8;

DeviceBuffer<std::byte> make_workspace(const CudaStream& stream, std::uint64_t score_bytes,
                                       std::uint64_t reserved_bytes) {
  constexpr std::uint64_t least_share = 16;  // less memory would miss it
  const std::uint64_t available = stream.budget().available();
  const std::uint64_t spare = available - std::min(available, reserved_bytes);
  const std::uint64_t useful =
      std::clamp(score_bytes * partial_sums, min_blas_bytes, recommended_bytes(stream.ordinal()));
  const std::uint64_t target = spare / least_share >= useful ? useful : min_blas_bytes;
  return with_working_memory(stream, min_blas_bytes, target, 0, [&](std::uint64_t bytes) {
    return DeviceBuffer<std::byte>(stream, bytes, "opening cuBLAS");
  });
}

}  // namespace

cublasHandle_t create_blas(int ordinal) {
  const DeviceScope scope(ordinal);
  cublasHandle_t handle = nullptr;
  check_blas(ordinal, cublasCreate(&handle), "opening cuBLAS");
  return handle;
}

void destroy_blas(int ordinal, cublasHandle_t handle) {
  // A handle must be destroyed on its own device.
  const DeviceScope scope(ordinal);
  static_cast<void>(cublasDestroy(handle));
}

Blas::Blas(const CudaStream& stream, cublasHandle_t handle, Encoding encoding, std::uint64_t score_bytes,
           std::uint64_t reserved_bytes)
    : handle_(handle), encoding_(encoding), workspace_(make_workspace(stream, score_bytes, reserved_bytes)) {
  check_blas(stream.ordinal(), cublasSetMathMode(handle_, math_mode(encoding)), "opening cuBLAS");
  // The stream first: setting it ends the use of a workspace.
  check_blas(stream.ordinal(), cublasSetStream(handle_, stream.handle()), "opening cuBLAS");
  check_blas(stream.ordinal(), cublasSetWorkspace(handle_, workspace_.data(), workspace_.size()),
             "opening cuBLAS");
}

void Blas::negated_products(const CudaStream& stream, const std::byte* queries, std::size_t query_count,
                            const std::byte* rows, std::size_t row_count, std::size_t width,
                            float* out) const {
  const float minus_one = -1;
  const float zero = 0;
  const int depth = static_cast<int>(width);
  const cudaDataType type = encoding_ == Encoding::bf16 ? CUDA_R_16BF : CUDA_R_32F;
  const cublasComputeType_t compute = encoding_ == Encoding::f32    ? CUBLAS_COMPUTE_32F_PEDANTIC
                                      : encoding_ == Encoding::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                    : CUBLAS_COMPUTE_32F;
  // cuBLAS is column-major: our rows are its columns, and `out` is its [rows, queries].
  check_blas(
      stream.ordinal(),
      cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(row_count),
                   static_cast<int>(query_count), depth, &minus_one, rows, type, depth, queries, type, depth,
                   &zero, out, CUDA_R_32F, static_cast<int>(row_count), compute, CUBLAS_GEMM_DEFAULT),
      "exact search");
}

}  // namespace nearwise::gpu
