// Squared distances of x [n, dim] and y [m, dim] through tiles in shared memory, correctly or with a chosen
// bug.
#pragma once

#include "backend/cuda/device/gpu.h"

namespace cuda_emulation {

enum class TileMistake { none, no_second_barrier, one_row_too_far };

template <int tile, TileMistake mistake = TileMistake::none>
__global__ void tiled_distances(const float* __restrict__ x, const float* __restrict__ y, int n, int m,
                                int dim, float* __restrict__ distances) {
  __shared__ float x_tile[tile][tile + 1];
  __shared__ float y_tile[tile][tile + 1];
  const int column = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(threadIdx.y);
  const int x_row = static_cast<int>(blockIdx.y) * tile + row;
  const int y_row = static_cast<int>(blockIdx.x) * tile + row;
  const int out_column = static_cast<int>(blockIdx.x) * tile + column;
  const int y_rows = mistake == TileMistake::one_row_too_far ? m + 1 : m;
  float sum = 0;
  for (int first = 0; first < dim; first += tile) {
    const int i = first + column;
    x_tile[row][column] = x_row < n && i < dim ? x[x_row * dim + i] : 0.0f;
    y_tile[row][column] = y_row < y_rows && i < dim ? y[y_row * dim + i] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile; ++k) {
      const float difference = x_tile[row][k] - y_tile[column][k];
      sum = fmaf(difference, difference, sum);
    }
    if constexpr (mistake != TileMistake::no_second_barrier) __syncthreads();
  }
  if (x_row < n && out_column < m) distances[x_row * m + out_column] = sum;
}

}  // namespace cuda_emulation
