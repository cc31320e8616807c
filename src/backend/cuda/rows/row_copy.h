// Stream-ordered copies of rows between matrices of different strides.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backend/cuda/device/error.h"

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

}  // namespace nearwise::gpu
