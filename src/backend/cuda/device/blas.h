// cuBLAS products of packed rows.
#pragma once

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/encoding.h"
#include "backend/cuda/device/stream.h"

namespace nearwise::gpu {

// Of a device. Slow: a StreamSet keeps it.
cublasHandle_t create_blas(int ordinal);
void destroy_blas(int ordinal, cublasHandle_t handle);

// Smallest workspace with which cuBLAS does not fail for lack of it.
inline constexpr std::uint64_t min_blas_bytes = 16 << 10;

// A handle, set up for one stream.
class Blas {
 public:
  Blas(const CudaStream& stream, cublasHandle_t handle, Encoding encoding, std::uint64_t score_bytes,
       std::uint64_t reserved_bytes);
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // out(q, r) = -sum over i of queries(q, i) * rows(r, i), in f32. Device matrices in the encoding,
  // contiguous.
  void negated_products(const CudaStream& stream, const std::byte* queries, std::size_t query_count,
                        const std::byte* rows, std::size_t row_count, std::size_t width, float* out) const;

 private:
  const cublasHandle_t handle_;
  const Encoding encoding_;
  DeviceBuffer<std::byte> workspace_;
};

}  // namespace nearwise::gpu
