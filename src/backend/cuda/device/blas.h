// cuBLAS products of packed rows.
#pragma once

#include <cublas_v2.h>

#include <cstddef>

#include "backend/cuda/device/encoding.h"
#include "backend/cuda/device/stream.h"

namespace nearwise::gpu {

class Blas {
 public:
  Blas(const CudaStream& stream, Encoding encoding);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // out(q, r) = -sum over i of queries(q, i) * rows(r, i), in f32. Device matrices in the encoding,
  // contiguous.
  void negated_products(const CudaStream& stream, const std::byte* queries, std::size_t query_count,
                        const std::byte* rows, std::size_t row_count, std::size_t width, float* out) const;

 private:
  const int ordinal_;
  const Encoding encoding_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace nearwise::gpu
