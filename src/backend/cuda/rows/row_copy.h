// Copies of rows between matrices of different strides, in the order of a stream.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backend/cuda/device/error.h"

namespace nearwise::gpu {

// The longest distance between rows that CUDA copies at once.
inline constexpr std::size_t longest_pitch = 0x7fff'ffff;

// `rows` rows of `cols` elements; strides in elements.
template <typename T>
void copy_rows(cudaStream_t stream, T* to, std::size_t to_stride, const T* from, std::size_t from_stride,
               std::size_t cols, std::size_t rows, cudaMemcpyKind kind, const char* operation) {
  if (rows == 1 || (to_stride == cols && from_stride == cols))
    return check(cudaMemcpyAsync(to, from, rows * cols * sizeof(T), kind, stream), operation);
  if (std::max(to_stride, from_stride) * sizeof(T) <= longest_pitch)
    return check(cudaMemcpy2DAsync(to, to_stride * sizeof(T), from, from_stride * sizeof(T), cols * sizeof(T),
                                   rows, kind, stream),
                 operation);
  for (std::size_t row = 0; row < rows; ++row)
    check(cudaMemcpyAsync(to + row * to_stride, from + row * from_stride, cols * sizeof(T), kind, stream),
          operation);
}

}  // namespace nearwise::gpu
