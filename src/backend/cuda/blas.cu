#include "backend/cuda/blas.h"

#include "core/check.h"

namespace nearwise::gpu {
namespace {

void check_blas(const CudaStream& stream, cublasStatus_t status, const char* operation) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::device,
       "{}: cuda:{}: cuBLAS: {}", operation, stream.ordinal(), cublasGetStatusString(status));
}

}  // namespace

Blas::Blas(const CudaStream& stream) {
  check_blas(stream, cublasCreate(&handle_), "opening cuBLAS");
  // Neither the environment nor a later version may choose TF32 or emulated products: the bound is that of f32.
  const cublasStatus_t status = cublasSetMathMode(handle_, CUBLAS_PEDANTIC_MATH);
  if (status != CUBLAS_STATUS_SUCCESS) static_cast<void>(cublasDestroy(handle_));
  check_blas(stream, status, "opening cuBLAS");
}

void Blas::negated_products(const CudaStream& stream, const float* queries, std::size_t query_count,
                            const float* rows, std::size_t row_count, std::size_t width, float* out) const {
  check_blas(stream, cublasSetStream(handle_, stream.handle()), "exact search");
  const float minus_one = -1;
  const float zero = 0;
  const int depth = static_cast<int>(width);
  // BLAS counts columns first: our rows are its columns, and out is its [rows, queries].
  check_blas(stream,
             cublasSgemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(row_count),
                         static_cast<int>(query_count), depth, &minus_one, rows, depth, queries, depth, &zero,
                         out, static_cast<int>(row_count)),
             "exact search");
}

}  // namespace nearwise::gpu
