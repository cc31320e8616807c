// Products of base vectors and queries by AMX tiles.
//
// One step multiplies 32 base vectors by 32 queries: four accumulator tiles of 16 x 16, fed by two tiles of
// base vectors and two of queries per 64 bytes of depth. Accumulators can only be read through memory: they
// are stored, and compared while the next step's products are computed (amx_scan_loop.h).
//
// Base panels hold 64-byte units of 32 vectors, query panels 4-byte units of 32 queries: the layouts of the
// left and right operand of a tile product. A call keeps its base vectors and queries in L2.
#pragma once

#include <hwy/base.h>
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/x86/amx_scope.h"

#define NEARWISE_TILE_ATTRIBUTES "avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-int8,amx-bf16"

HWY_PUSH_ATTRIBUTES(NEARWISE_TILE_ATTRIBUTES)
namespace nearwise::cpu::x86 {

inline constexpr std::size_t side = 16;                 // rows and columns of a tile
inline constexpr std::size_t step = 2 * side;           // base vectors and queries per step
inline constexpr std::size_t line = 64;                 // bytes of a tile's row
inline constexpr std::size_t tile_bytes = side * line;  // also of an accumulator

// Four stored accumulator tiles: base rows 0-15 by queries 0-15, by queries 16-31, then base rows 16-31.
struct alignas(64) Stored {
  std::int32_t tile[4][side * side];
};

// first + factor * (0, ..., 15).
HWY_INLINE __m512i numbers(std::uint32_t first, int factor) {
  const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_add_epi32(_mm512_mullo_epi32(iota, _mm512_set1_epi32(factor)),
                          _mm512_set1_epi32(static_cast<int>(first)));
}

HWY_INLINE __m512i column_of(const std::int32_t* products, std::size_t column) {
  return _mm512_i32gather_epi32(numbers(0, side), products + column, sizeof(std::int32_t));
}

HWY_INLINE __mmask16 rows_below(std::uint32_t first_row, std::uint32_t end_row) {
  return _mm512_cmplt_epu32_mask(numbers(first_row, 1), _mm512_set1_epi32(static_cast<int>(end_row)));
}

// Product of a base panel and a query panel, interleaved with compare(row) for the rows of the previous step.
// rows_per_step: rows compared per 64 bytes of depth, so that all 16 are done before the product.
template <class Products, std::size_t rows_per_step, typename Compare>
HWY_INLINE void multiply(const std::byte* rows, const std::byte* queries, std::size_t depth,
                         const Compare& compare) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::size_t d = 0; d < depth; ++d) {
    _tile_loadd(4, rows + d * 2 * tile_bytes, line);
    _tile_loadd(6, queries + d * 2 * tile_bytes, 2 * line);
    _tile_loadd(7, queries + d * 2 * tile_bytes + line, 2 * line);
    _tile_loadd(5, rows + d * 2 * tile_bytes + tile_bytes, line);
    Products::multiply();
    if (d * rows_per_step < side)
      for (std::size_t row = 0; row < rows_per_step; ++row) compare(d * rows_per_step + row);
  }
}

HWY_INLINE void store_tiles(Stored& stored) {
  _tile_stored(0, stored.tile[0], line);
  _tile_stored(1, stored.tile[1], line);
  _tile_stored(2, stored.tile[2], line);
  _tile_stored(3, stored.tile[3], line);
}

}  // namespace nearwise::cpu::x86
HWY_POP_ATTRIBUTES
