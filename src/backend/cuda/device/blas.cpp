#include "backend/cuda/device/blas.h"

#include "backend/cuda/device/device_scope.h"
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

void check_blas(const CudaStream& stream, cublasStatus_t status, const char* operation) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(code_of(status), "{}: cuda:{}: cuBLAS: {}", operation, stream.ordinal(),
       cublasGetStatusString(status));
}

// Forbids the environment and later cuBLAS versions to choose lower precision: the error bound assumes the
// encoding.
cublasMath_t math_mode(Encoding encoding) {
  if (encoding == Encoding::f32) return CUBLAS_PEDANTIC_MATH;
  return static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
}

}  // namespace

Blas::Blas(const CudaStream& stream, Encoding encoding) : ordinal_(stream.ordinal()), encoding_(encoding) {
  const DeviceScope scope(ordinal_);
  check_blas(stream, cublasCreate(&handle_), "opening cuBLAS");
  const cublasStatus_t status = cublasSetMathMode(handle_, math_mode(encoding));
  if (status != CUBLAS_STATUS_SUCCESS) static_cast<void>(cublasDestroy(handle_));
  check_blas(stream, status, "opening cuBLAS");
}

Blas::~Blas() {
  // A handle must be destroyed on its own device.
  const DeviceScope scope(ordinal_);
  static_cast<void>(cublasDestroy(handle_));
}

void Blas::negated_products(const CudaStream& stream, const std::byte* queries, std::size_t query_count,
                            const std::byte* rows, std::size_t row_count, std::size_t width,
                            float* out) const {
  check_blas(stream, cublasSetStream(handle_, stream.handle()), "exact search");
  const float minus_one = -1;
  const float zero = 0;
  const int depth = static_cast<int>(width);
  const cudaDataType type = encoding_ == Encoding::bf16 ? CUDA_R_16BF : CUDA_R_32F;
  const cublasComputeType_t compute = encoding_ == Encoding::f32    ? CUBLAS_COMPUTE_32F_PEDANTIC
                                      : encoding_ == Encoding::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                    : CUBLAS_COMPUTE_32F;
  // cuBLAS is column-major: our rows are its columns, and `out` is its [rows, queries].
  check_blas(
      stream,
      cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(row_count),
                   static_cast<int>(query_count), depth, &minus_one, rows, type, depth, queries, type, depth,
                   &zero, out, CUDA_R_32F, static_cast<int>(row_count), compute, CUBLAS_GEMM_DEFAULT),
      "exact search");
}

}  // namespace nearwise::gpu
