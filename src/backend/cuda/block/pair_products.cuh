// Inner products of the rows and columns of a tile by a block, with elements in shared memory.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/join_groups.h"

namespace nearwise::gpu {

inline constexpr int pair_side = 16;                              // threads of a block per dimension
inline constexpr int pairs_side = tuning::join_tile / pair_side;  // pairs of a thread per dimension
inline constexpr int element_stride =
    tuning::join_tile + 2;  // no bank conflicts: four elements of eight rows use all banks
inline constexpr int element_count = tuning::join_depth * element_stride;
static_assert(pair_side * pair_side == tuning::join_threads);
// A thread loads four elements of one row and four of one column.
static_assert(tuning::join_tile * tuning::join_depth == 4 * tuning::join_threads);

// A thread has the pairs of rows row() + 16 i and columns column() + 16 j.
struct PairProducts {
  float sums[pairs_side][pairs_side] = {};

  static __device__ __forceinline__ std::uint32_t row() { return threadIdx.x / pair_side; }
  static __device__ __forceinline__ std::uint32_t column() { return threadIdx.x % pair_side; }

  // row_indices, column_indices: rows of `packed` [.., width]. Called by all threads of a block.
  __device__ __forceinline__ void add(const float* packed, std::uint32_t width,
                                      const std::uint32_t* row_indices, std::uint32_t rows,
                                      const std::uint32_t* column_indices, std::uint32_t columns,
                                      float* row_elements, float* column_elements) {
    for (std::uint32_t first = 0; first < width; first += tuning::join_depth) {
      load(packed, width, first, row_indices, rows, row_elements);
      load(packed, width, first, column_indices, columns, column_elements);
      __syncthreads();  // elements loaded
      const std::uint32_t depth = min(width - first, static_cast<std::uint32_t>(tuning::join_depth));
      if (row() < rows && column() < columns) multiply(row_elements, column_elements, depth);
      __syncthreads();  // elements consumed
    }
  }

 private:
  // Elements [depth, tile] of the given rows from element `first` on; zero past the last element or row.
  static __device__ __forceinline__ void load(const float* packed, std::uint32_t width, std::uint32_t first,
                                              const std::uint32_t* indices, std::uint32_t count,
                                              float* elements) {
    constexpr std::uint32_t quads = tuning::join_depth / 4;
    const std::uint32_t row = threadIdx.x / quads;
    const std::uint32_t element = threadIdx.x % quads * 4;
    float4 four = {0, 0, 0, 0};
    if (row < count && first + element < width)
      four = *reinterpret_cast<const float4*>(packed + std::size_t{indices[row]} * width + first + element);
    float* const out = elements + element * element_stride + row;
    out[0] = four.x;
    out[element_stride] = four.y;
    out[2 * element_stride] = four.z;
    out[3 * element_stride] = four.w;
  }

  __device__ __forceinline__ void multiply(const float* row_elements, const float* column_elements,
                                           std::uint32_t depth) {
#pragma unroll 4
    for (std::uint32_t element = 0; element < depth; ++element) {
      float left[pairs_side];
      float right[pairs_side];
#pragma unroll
      for (int i = 0; i < pairs_side; ++i) {
        left[i] = row_elements[element * element_stride + row() + i * pair_side];
        right[i] = column_elements[element * element_stride + column() + i * pair_side];
      }
#pragma unroll
      for (int i = 0; i < pairs_side; ++i)
#pragma unroll
        for (int j = 0; j < pairs_side; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
    }
  }
};

}  // namespace nearwise::gpu
