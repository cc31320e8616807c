// Stream-ordered copies of rows between matrices of different strides.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backend/cuda/device/error.h"
#include "backend/cuda/device/stream.h"

namespace nearwise::gpu {

// Maximum pitch of a CUDA 2D copy.
inline constexpr std::size_t max_pitch = 0x7fff'ffff;

// Strides in elements.
template <typename T>
void copy_rows(cudaStream_t stream, T* to, std::size_t to_stride, const T* from, std::size_t from_stride,
               std::size_t cols, std::size_t rows, cudaMemcpyKind kind, const char* operation) {
  if (rows == 1 || (to_stride == cols && from_stride == cols))
    return check(cudaMemcpyAsync(to, from, rows * cols * sizeof(T), kind, stream), operation);
  if (std::max(to_stride, from_stride) * sizeof(T) <= max_pitch)
    return check(cudaMemcpy2DAsync(to, to_stride * sizeof(T), from, from_stride * sizeof(T), cols * sizeof(T),
                                   rows, kind, stream),
                 operation);
  for (std::size_t row = 0; row < rows; ++row)
    check(cudaMemcpyAsync(to + row * to_stride, from + row * from_stride, cols * sizeof(T), kind, stream),
          operation);
}

// From the host to contiguous memory on the device, through pinned memory: the rows may be changed at once.
template <typename T>
void send_rows(const CudaStream& stream, T* to, const T* from, std::size_t from_stride, std::size_t cols,
               std::size_t rows, const char* operation) {
  if (rows == 0 || cols == 0) return;
  stream.pinned(operation).send(
      stream.handle(),
      {reinterpret_cast<const std::byte*>(from), from_stride * sizeof(T), cols * sizeof(T), rows},
      reinterpret_cast<std::byte*>(to), operation);
}

}  // namespace nearwise::gpu
