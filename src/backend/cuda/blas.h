// cuBLAS: products in f32, without tensor cores.
#pragma once

#include <cublas_v2.h>

#include <cstddef>

#include "backend/cuda/stream.h"

namespace nearwise::gpu {

class Blas {
 public:
  explicit Blas(const CudaStream& stream);
  ~Blas() { static_cast<void>(cublasDestroy(handle_)); }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // out(q, r) = - sum over i of queries(q, i) * rows(r, i). Matrices on the device, one row after another.
  void negated_products(const CudaStream& stream, const float* queries, std::size_t query_count,
                        const float* rows, std::size_t row_count, std::size_t width, float* out) const;

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace nearwise::gpu
