// A table of 256 byte entries fills four registers, in which vpermi2b looks up 64 codes at a time; 16 entries
// fill a quarter of one. The codes of 64 rows are transposed so that a register holds one byte of each.
#include "backend/cpu/x86/scan_codes.h"

#include <hwy/base.h>
#include <immintrin.h>

#include <array>

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")
namespace nearwise::cpu::x86 {
namespace {

constexpr std::size_t block_rows = 64;
constexpr std::size_t column_bytes = 16;  // code bytes transposed at a time
constexpr std::size_t lanes = 16;

struct Columns {
  __m512i of[column_bytes];  // byte i of every row
};

// Bytes [0, valid) of a code.
template <bool all>
HWY_INLINE __m128i load_code(const std::byte* code, std::size_t valid) {
  if constexpr (all) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(code));
  return _mm_maskz_loadu_epi8(static_cast<__mmask16>((1U << valid) - 1), code);
}

// Loads codes at `from`, `stride` bytes apart; rows from `rows` on repeat the last.
template <bool all>
HWY_INLINE void load(const std::byte* from, std::size_t stride, std::size_t rows, std::size_t valid,
                     Columns& out) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < column_bytes; ++i) {
    const std::byte* codes[4];
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) codes[j] = from + (4 * i + j < rows ? 4 * i + j : rows - 1) * stride;
    const __m512i first = _mm512_castsi128_si512(load_code<all>(codes[0], valid));
    const __m512i second = _mm512_inserti32x4(first, load_code<all>(codes[1], valid), 1);
    const __m512i third = _mm512_inserti32x4(second, load_code<all>(codes[2], valid), 2);
    out.of[i] = _mm512_inserti32x4(third, load_code<all>(codes[3], valid), 3);
  }
}

// The same for 64 rows and 16 bytes: the common case, without bounds checks.
HWY_INLINE void load_rows(const std::byte* from, std::size_t stride, Columns& out) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < column_bytes; ++i, from += 4 * stride) {
    const __m512i first = _mm512_castsi128_si512(load_code<true>(from, column_bytes));
    const __m512i second = _mm512_inserti32x4(first, load_code<true>(from + stride, column_bytes), 1);
    const __m512i third = _mm512_inserti32x4(second, load_code<true>(from + 2 * stride, column_bytes), 2);
    out.of[i] = _mm512_inserti32x4(third, load_code<true>(from + 3 * stride, column_bytes), 3);
  }
}

// 64 codes of exactly 16 bytes: four rows per register.
HWY_INLINE void load_whole(const std::byte* from, Columns& out) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < column_bytes; ++i) out.of[i] = _mm512_loadu_si512(from + 64 * i);
}

// From registers of 4 rows x 16 bytes to registers of one byte of 64 rows.
HWY_INLINE void transpose(Columns& c) {
  alignas(64) static constexpr std::uint8_t four_rows[64] = {
      0,  16, 32, 48, 1,  17, 33, 49, 2,  18, 34, 50, 3,  19, 35, 51, 4,  20, 36, 52, 5,  21,
      37, 53, 6,  22, 38, 54, 7,  23, 39, 55, 8,  24, 40, 56, 9,  25, 41, 57, 10, 26, 42, 58,
      11, 27, 43, 59, 12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63};
  const __m512i order = _mm512_load_si512(four_rows);
  Columns t;
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) c.of[i] = _mm512_permutexvar_epi8(order, c.of[i]);
    // A 16 x 16 transpose of groups of 4 rows.
#pragma GCC unroll 8
  for (std::size_t i = 0; i < 16; i += 2) {
    t.of[i] = _mm512_unpacklo_epi32(c.of[i], c.of[i + 1]);
    t.of[i + 1] = _mm512_unpackhi_epi32(c.of[i], c.of[i + 1]);
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 16; i += 4) {
    c.of[i] = _mm512_unpacklo_epi64(t.of[i], t.of[i + 2]);
    c.of[i + 1] = _mm512_unpackhi_epi64(t.of[i], t.of[i + 2]);
    c.of[i + 2] = _mm512_unpacklo_epi64(t.of[i + 1], t.of[i + 3]);
    c.of[i + 3] = _mm512_unpackhi_epi64(t.of[i + 1], t.of[i + 3]);
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    t.of[i] = _mm512_shuffle_i32x4(c.of[i], c.of[i + 4], 0x88);
    t.of[i + 4] = _mm512_shuffle_i32x4(c.of[i], c.of[i + 4], 0xDD);
    t.of[i + 8] = _mm512_shuffle_i32x4(c.of[i + 8], c.of[i + 12], 0x88);
    t.of[i + 12] = _mm512_shuffle_i32x4(c.of[i + 8], c.of[i + 12], 0xDD);
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    c.of[i] = _mm512_shuffle_i32x4(t.of[i], t.of[i + 8], 0x88);
    c.of[i + 8] = _mm512_shuffle_i32x4(t.of[i], t.of[i + 8], 0xDD);
    c.of[i + 4] = _mm512_shuffle_i32x4(t.of[i + 4], t.of[i + 12], 0x88);
    c.of[i + 12] = _mm512_shuffle_i32x4(t.of[i + 4], t.of[i + 12], 0xDD);
  }
}

// 16-bit sums of 64 rows, even and odd rows separately.
struct Sums {
  __m512i even;
  __m512i odd;
};

// Running sums: odd, and both = even + 256 * odd modulo 2^16. The overflow of `both` comes from the odd rows
// and cancels when 256 * odd is subtracted.
struct OpenSums {
  __m512i both;
  __m512i odd;

  HWY_INLINE void add(__m512i entries) {
    both = _mm512_add_epi16(both, entries);
    odd = _mm512_add_epi16(odd, _mm512_srli_epi16(entries, 8));
  }
  HWY_INLINE Sums close() const { return {_mm512_sub_epi16(both, _mm512_slli_epi16(odd, 8)), odd}; }
};

// Positions of the even or the odd rows after packing pairs of 16-row registers to 16 bits: rows 0 to 31 are
// in the first of two registers, the others in the second.
constexpr std::array<std::uint16_t, 32> places_from(std::size_t first_row) {
  std::array<std::uint16_t, 32> places = {};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t row = 2 * i + first_row;
    const std::size_t within = row % 16;
    places[i] = static_cast<std::uint16_t>(row / 32 * 32 + within / 4 * 8 + row / 16 % 2 * 4 + within % 4);
  }
  return places;
}

HWY_INLINE void add_norms(const CodeScanArgs& args, Sums& sums) {
  alignas(64) static constexpr std::array<std::uint16_t, 32> even_places = places_from(0);
  alignas(64) static constexpr std::array<std::uint16_t, 32> odd_places = places_from(1);
  const __m512 least = _mm512_set1_ps(args.min_norm);
  const __m512 scale = _mm512_set1_ps(args.norm_scale);
  const std::uint64_t there =
      args.rows == block_rows ? ~std::uint64_t{0} : (std::uint64_t{1} << args.rows) - 1;
  __m512i steps[4];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    const __m512 norms =
        _mm512_maskz_loadu_ps(static_cast<__mmask16>(there >> (lanes * i)), args.norms + lanes * i);
    const __m512 above = _mm512_mul_ps(_mm512_sub_ps(norms, least), scale);
    steps[i] = _mm512_cvttps_epi32(_mm512_min_ps(above, _mm512_set1_ps(65535)));
  }
  const __m512i low = _mm512_packus_epi32(steps[0], steps[1]);
  const __m512i high = _mm512_packus_epi32(steps[2], steps[3]);
  const __m512i even = _mm512_permutex2var_epi16(low, _mm512_load_si512(even_places.data()), high);
  const __m512i odd = _mm512_permutex2var_epi16(low, _mm512_load_si512(odd_places.data()), high);
  sums.even = _mm512_adds_epu16(sums.even, even);
  sums.odd = _mm512_adds_epu16(sums.odd, odd);
}

HWY_INLINE __m512i look_up_256(const std::uint8_t* table, __m512i codes) {
  const __m512i low =
      _mm512_permutex2var_epi8(_mm512_loadu_si512(table), codes, _mm512_loadu_si512(table + 64));
  const __m512i high =
      _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), codes, _mm512_loadu_si512(table + 192));
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), low, high);
}

HWY_INLINE __m512i look_up_16(const std::uint8_t* table, __m512i codes) {
  const __m512i entries = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return _mm512_shuffle_epi8(entries, _mm512_and_si512(codes, _mm512_set1_epi8(15)));
}

}  // namespace

TableRange measure_tables(const float* tables, std::size_t parts, std::size_t codewords,
                          float* minima) noexcept {
  TableRange range;
  for (std::size_t part = 0; part < parts; ++part) {
    __m512 least = _mm512_loadu_ps(tables + part * codewords);
    __m512 most = least;
    for (std::size_t codeword = lanes; codeword < codewords; codeword += lanes) {
      const __m512 values = _mm512_loadu_ps(tables + part * codewords + codeword);
      least = _mm512_min_ps(least, values);
      most = _mm512_max_ps(most, values);
    }
    minima[part] = _mm512_reduce_min_ps(least);
    const float largest = _mm512_reduce_max_ps(most);
    const float width = largest - minima[part];
    range.least += minima[part];
    range.magnitude += -minima[part] > largest ? -minima[part] : largest;
    range.widest = range.widest > width ? range.widest : width;
  }
  return range;
}

void fill_byte_tables(const float* tables, const float* minima, std::size_t parts, std::size_t codewords,
                      float scale, std::uint8_t* bytes) noexcept {
  const __m512 scales = _mm512_set1_ps(scale);
  const __m512 most = _mm512_set1_ps(255);
  for (std::size_t part = 0; part < parts; ++part) {
    const __m512 least = _mm512_set1_ps(minima[part]);
    for (std::size_t codeword = 0; codeword < codewords; codeword += lanes) {
      const std::size_t place = part * codewords + codeword;
      const __m512 above = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(tables + place), least), scales);
      const __m512i entries = _mm512_cvttps_epi32(_mm512_min_ps(above, most));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + place), _mm512_cvtepi32_epi8(entries));
    }
  }
}

namespace {

HWY_INLINE Sums sums_of(const CodeScanArgs& args) {
  OpenSums sums = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  const std::size_t codewords = std::size_t{1} << args.bits;
  const std::size_t parts_per_byte = args.bits == 8 ? 1 : 2;
  for (std::size_t first = 0; first < args.code_bytes; first += column_bytes) {
    const std::size_t left = args.code_bytes - first;
    const std::size_t valid = left < column_bytes ? left : column_bytes;
    Columns columns;
    if (args.code_bytes == column_bytes && args.rows == block_rows)
      load_whole(args.codes, columns);
    else if (valid == column_bytes && args.rows == block_rows)
      load_rows(args.codes + first, args.code_bytes, columns);
    else if (valid == column_bytes)
      load<true>(args.codes + first, args.code_bytes, args.rows, valid, columns);
    else
      load<false>(args.codes + first, args.code_bytes, args.rows, valid, columns);
    transpose(columns);
    const std::uint8_t* table = args.tables + first * parts_per_byte * codewords;
    if (args.bits == 8) {
      for (std::size_t i = 0; i < valid; ++i, table += codewords) sums.add(look_up_256(table, columns.of[i]));
    } else {
      const std::size_t parts = args.parts - 2 * first;
      for (std::size_t i = 0; i < valid; ++i, table += 2 * codewords) {
        sums.add(look_up_16(table, columns.of[i]));
        if (2 * i + 1 < parts) sums.add(look_up_16(table + codewords, _mm512_srli_epi16(columns.of[i], 4)));
      }
    }
  }
  Sums closed = sums.close();
  if (args.norms != nullptr) add_norms(args, closed);
  return closed;
}

HWY_INLINE std::uint64_t rows_within(Sums sums, std::uint16_t threshold) {
  const __m512i most = _mm512_set1_epi16(static_cast<short>(threshold));
  const std::uint64_t even = _mm512_cmple_epu16_mask(sums.even, most);
  const std::uint64_t odd = _mm512_cmple_epu16_mask(sums.odd, most);
  return _pdep_u64(even, 0x5555555555555555) | _pdep_u64(odd, 0xAAAAAAAAAAAAAAAA);
}

}  // namespace

std::uint64_t scan_codes(const CodeScanArgs& args) noexcept {
  const std::uint64_t passed = rows_within(sums_of(args), args.threshold);
  return args.rows == block_rows ? passed : passed & ((std::uint64_t{1} << args.rows) - 1);
}

void sum_codes(const CodeScanArgs& args, std::uint16_t* out) noexcept {
  const Sums sums = sums_of(args);
  _mm512_storeu_si512(out, sums.even);
  _mm512_storeu_si512(out + block_rows / 2, sums.odd);
}

std::uint64_t rows_within(const std::uint16_t* sums, std::uint16_t threshold) noexcept {
  return rows_within({_mm512_loadu_si512(sums), _mm512_loadu_si512(sums + block_rows / 2)}, threshold);
}

std::uint16_t kth_sum(const std::uint16_t* sums, std::size_t count, std::size_t k) noexcept {
  unsigned low = 0;  // the k-th sum is in [low, high]
  unsigned high = 0xFFFF;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    const __m512i most = _mm512_set1_epi16(static_cast<short>(middle));
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; i += block_rows / 2)
      found += static_cast<std::size_t>(
          __builtin_popcount(_mm512_cmple_epu16_mask(_mm512_loadu_si512(sums + i), most)));
    if (found >= k)
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<std::uint16_t>(low);
}

}  // namespace nearwise::cpu::x86
HWY_POP_ATTRIBUTES
