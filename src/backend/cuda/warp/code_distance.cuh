// Squared differences between a query and rows of codes, in integers, by a warp: eight threads per row.
//
// (scale c - q)^2 is expanded, because products of bytes have instructions of their own. Sums are modulo
// 2^32; what they add up to is below 2^31 (codes/scalar_codec.h).
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/lane_network.cuh"
#include "backend/cuda/warp/query_codes.cuh"

namespace nearwise::gpu {

// A query in the layout of query_codes.cuh, and the sum of the squares of its elements.
struct CodeQuery {
  const uint4* pieces = nullptr;
  std::uint32_t squares = 0;
};

struct CodeSums {
  std::uint32_t squares = 0;
  std::uint32_t codes = 0;
  std::uint32_t products = 0;

  // Four codes, and their elements of the query.
  __device__ __forceinline__ void add(std::uint32_t four, std::uint32_t first, std::uint32_t second) {
    squares = __dp4a(four, four, squares);
    codes = __dp4a(four, 0x01010101U, codes);
    products = __dp2a_lo(first, four, products);
    products = __dp2a_hi(second, four, products);
  }
  __device__ __forceinline__ void add(std::uint32_t first, std::uint32_t second, const uint4& piece) {
    add(first, piece.x, piece.y);
    add(second, piece.z, piece.w);
  }
};

__device__ __forceinline__ void add_load(ByteCodes, const uint4& codes, const uint4* pieces, CodeSums& sums) {
  sums.add(codes.x, codes.y, pieces[0]);
  sums.add(codes.z, codes.w, pieces[row_threads]);
}

__device__ __forceinline__ void add_load(NibbleCodes, const uint4& codes, const uint4* pieces,
                                         CodeSums& sums) {
  constexpr std::uint32_t lower = 0x0F0F0F0FU;
  sums.add(codes.x & lower, codes.y & lower, pieces[0]);
  sums.add(codes.z & lower, codes.w & lower, pieces[row_threads]);
  sums.add(codes.x >> 4 & lower, codes.y >> 4 & lower, pieces[2 * row_threads]);
  sums.add(codes.z >> 4 & lower, codes.w >> 4 & lower, pieces[3 * row_threads]);
}

// Distances of the rows of the first `count` lanes, 1 to 32, each to its lane. Called by all lanes.
template <class Codes>
__device__ __forceinline__ std::uint32_t code_distances(const std::uint8_t* codes, std::uint32_t row_bytes,
                                                        const CodeQuery& query, std::uint32_t row,
                                                        std::uint32_t count, std::uint32_t lane) {
  constexpr std::uint32_t rows_at_once = warp_lanes / row_threads;
  constexpr std::uint32_t stride = load_bytes * row_threads;
  const std::uint32_t thread = lane % row_threads;
  std::uint32_t own = 0;
#pragma unroll 1
  for (std::uint32_t first = 0; first < count; first += rows_at_once) {
    // All lanes take part in the sums: threads without a row repeat the last one.
    const std::uint32_t compared =
        __shfl_sync(whole_warp, row, static_cast<int>(min(first + lane / row_threads, count - 1)));
    const std::uint8_t* const code = codes + std::size_t{compared} * row_bytes;
    const uint4* pieces = query.pieces + thread;
    CodeSums sums;
    // Unrolled, it would need registers that the beam has.
#pragma unroll 1
    for (std::uint32_t offset = thread * load_bytes; offset < row_bytes; offset += stride) {
      add_load(Codes(), __ldg(reinterpret_cast<const uint4*>(code + offset)), pieces, sums);
      pieces += Codes::pieces * row_threads;
    }
    std::uint32_t sum = Codes::scale * Codes::scale * sums.squares +
                        2 * Codes::scale * (Codes::shift * sums.codes - sums.products);
    sum += __shfl_xor_sync(whole_warp, sum, 4);
    sum += __shfl_xor_sync(whole_warp, sum, 2);
    sum += __shfl_xor_sync(whole_warp, sum, 1);
    // Lane first + i gets the sum of the i-th row.
    const std::uint32_t given =
        __shfl_sync(whole_warp, sum, static_cast<int>(lane % rows_at_once * row_threads));
    if (lane / rows_at_once == first / rows_at_once) own = given;
  }
  return own + query.squares;
}

}  // namespace nearwise::gpu
