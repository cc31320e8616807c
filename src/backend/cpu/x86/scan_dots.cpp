// Scan by AVX-512 dot products of 4-byte units: four 8-bit integers (VNNI), those of the vectors or scaled
// ones, or two bf16 numbers.
//
// A tile of 6 queries x 64 base vectors stays in registers from the first product to the comparison with the
// cutoffs, as in kernels/scan_panels.cpp. VNNI multiplies unsigned by signed bytes: queries are packed with
// their highest bit flipped, which makes u8 signed and i8 unsigned, and the bias of the base vector
// compensates. Scaled rows are packed as unsigned bytes, and what a query's sums start from compensates.
#include <hwy/base.h>
#include <immintrin.h>

#include "backend/cpu/x86/scans.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")
namespace nearwise::cpu::x86 {
namespace {

constexpr std::size_t lanes = 16;
constexpr std::size_t tile_queries = 6;
constexpr std::size_t tile_vectors = 4;
constexpr std::size_t tile_rows = tile_vectors * lanes;
constexpr std::size_t unit = 4;

struct IntegerDots {
  using Sum = __m512i;
  HWY_INLINE static Sum start(const ScanArgs&, std::size_t) { return _mm512_setzero_si512(); }
  HWY_INLINE static __m512 score(const ScanArgs& args, std::size_t, std::size_t place, Sum sum) {
    const __m512i bias = _mm512_loadu_si512(args.integer_biases + place);
    const __m512i twice = _mm512_sub_epi32(bias, _mm512_add_epi32(sum, sum));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(twice), _mm512_set1_ps(0.5F));
  }
};

struct UnsignedDots : IntegerDots {  // queries signed after the flip
  HWY_INLINE static Sum add(Sum sum, __m512i query, __m512i rows) {
    return _mm512_dpbusd_epi32(sum, rows, query);
  }
};

struct SignedDots : IntegerDots {  // queries unsigned after the flip
  HWY_INLINE static Sum add(Sum sum, __m512i query, __m512i rows) {
    return _mm512_dpbusd_epi32(sum, query, rows);
  }
};

struct ScaledDots : UnsignedDots {
  HWY_INLINE static Sum start(const ScanArgs& args, std::size_t query) {
    return _mm512_set1_epi32(args.query_starts[query]);
  }
  HWY_INLINE static __m512 score(const ScanArgs& args, std::size_t query, std::size_t place, Sum sum) {
    const __m512 slack = _mm512_set1_ps(args.lists.slack_factors[query]);
    const __m512 scale = _mm512_set1_ps(args.query_scales[query]);
    const __m512 bias = _mm512_fnmadd_ps(slack, _mm512_loadu_ps(args.row_residuals + place),
                                         _mm512_loadu_ps(args.biases + place));
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(args.row_scales + place));
    return _mm512_fnmadd_ps(scale, product, bias);
  }
};

struct Bf16Dots {
  using Sum = __m512;
  HWY_INLINE static Sum start(const ScanArgs&, std::size_t) { return _mm512_setzero_ps(); }
  HWY_INLINE static Sum add(Sum sum, __m512i query, __m512i rows) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(query), reinterpret_cast<__m512bh>(rows));
  }
  HWY_INLINE static __m512 score(const ScanArgs& args, std::size_t, std::size_t place, Sum sum) {
    return _mm512_sub_ps(_mm512_loadu_ps(args.biases + place), sum);
  }
};

struct TileScores {
  __m512 of[tile_vectors];
};

HWY_NOINLINE void keep(const ScanArgs& args, std::size_t query, TileScores scores, std::uint32_t first_row) {
  const __m512 cutoff = _mm512_set1_ps(args.lists.cutoffs[query]);
  const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i end_row = _mm512_set1_epi32(static_cast<int>(args.end_row));
  float* const out_scores = args.lists.scores + query * args.lists.stride;
  std::uint32_t* const out_rows = args.lists.rows + query * args.lists.stride;
  std::size_t count = args.lists.counts[query];
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    const __m512i rows = _mm512_add_epi32(iota, _mm512_set1_epi32(static_cast<int>(first_row + v * lanes)));
    __mmask16 pass = _mm512_cmp_ps_mask(scores.of[v], cutoff, _CMP_LE_OQ);
    pass = _mm512_mask_cmplt_epu32_mask(pass, rows, end_row);
    if (args.allowed != nullptr) pass &= args.allowed[(first_row - args.first_row) / lanes + v];
    _mm512_storeu_ps(out_scores + count, _mm512_maskz_compress_ps(pass, scores.of[v]));
    _mm512_storeu_si512(out_rows + count, _mm512_maskz_compress_epi32(pass, rows));
    count += static_cast<std::size_t>(__builtin_popcount(pass));
  }
  args.lists.counts[query] = static_cast<std::uint32_t>(count);
  if (count + tile_rows > args.lists.capacity) args.make_room(args.owner, query);
}

template <class Dots>
struct alignas(64) Stored {
  typename Dots::Sum of[tile_queries][tile_vectors];
};

// A separate function without calls, so that the compiler keeps the accumulators in registers.
template <class Dots>
HWY_NOINLINE void multiply(const ScanArgs& args, const std::byte* queries, const std::byte* rows,
                           std::size_t first_query, Stored<Dots>& out) {
  const std::size_t units = args.row_bytes / unit;
  typename Dots::Sum sums[tile_queries][tile_vectors];
  HWY_UNROLL(6)
  for (std::size_t q = 0; q < tile_queries; ++q) HWY_UNROLL(6)
  for (std::size_t v = 0; v < tile_vectors; ++v) sums[q][v] = Dots::start(args, first_query + q);
  for (std::size_t u = 0; u < units; ++u) {
    __m512i row[tile_vectors];
    HWY_UNROLL(6)
    for (std::size_t v = 0; v < tile_vectors; ++v)
      row[v] = _mm512_loadu_si512(rows + (u * tile_rows + v * lanes) * unit);
    HWY_UNROLL(6)
    for (std::size_t q = 0; q < tile_queries; ++q) {
      const __m512i element =
          _mm512_set1_epi32(*reinterpret_cast<const int*>(queries + (u * tile_queries + q) * unit));
      HWY_UNROLL(6)
      for (std::size_t v = 0; v < tile_vectors; ++v) sums[q][v] = Dots::add(sums[q][v], element, row[v]);
    }
  }
  HWY_UNROLL(6)
  for (std::size_t q = 0; q < tile_queries; ++q) HWY_UNROLL(6)
  for (std::size_t v = 0; v < tile_vectors; ++v) out.of[q][v] = sums[q][v];
}

// place: index of the panel's first row in the biases
template <class Dots>
void scan_tile(const ScanArgs& args, const std::byte* queries, const std::byte* rows, std::size_t place,
               std::size_t first_query) {
  Stored<Dots> sums;
  multiply<Dots>(args, queries, rows, first_query, sums);
  for (std::size_t q = 0; q < tile_queries; ++q) {
    TileScores scores;
    for (std::size_t v = 0; v < tile_vectors; ++v)
      scores.of[v] = Dots::score(args, first_query + q, place + v * lanes, sums.of[q][v]);
    const __m512 least =
        _mm512_min_ps(_mm512_min_ps(scores.of[0], scores.of[1]), _mm512_min_ps(scores.of[2], scores.of[3]));
    const __m512 cutoff = _mm512_set1_ps(args.lists.cutoffs[first_query + q]);
    if (__builtin_expect(_mm512_cmp_ps_mask(least, cutoff, _CMP_LE_OQ) != 0, 0))
      keep(args, first_query + q, scores, args.first_row + static_cast<std::uint32_t>(place));
  }
}

template <class Dots>
void scan(const ScanArgs& args) {
  for (std::size_t b = 0; b < args.base_panel_count; ++b)
    for (std::size_t p = 0; p < args.query_panel_count; ++p)
      scan_tile<Dots>(args, args.query_panels + p * tile_queries * args.row_bytes,
                      args.base_panels + b * tile_rows * args.row_bytes, b * tile_rows,
                      args.first_query + p * tile_queries);
}

template <class Dots>
ScanKernel kernel(Encoding query_encoding, Encoding base_encoding) {
  return {.query_encoding = query_encoding,
          .base_encoding = base_encoding,
          .query_width = tile_queries,
          .base_width = tile_rows,
          .query_group_bytes = 192 << 10,
          .base_step_bytes = 4 << 20,
          .scan = scan<Dots>};
}

}  // namespace

ScanKernel integer_dots(ElementType type) {
  return type == ElementType::u8 ? kernel<UnsignedDots>(Encoding::flipped_byte, Encoding::byte)
                                 : kernel<SignedDots>(Encoding::flipped_byte, Encoding::byte);
}

ScanKernel scaled_dots() { return kernel<ScaledDots>(Encoding::scaled_byte, Encoding::scaled_unsigned_byte); }

ScanKernel bf16_dots() { return kernel<Bf16Dots>(Encoding::bf16, Encoding::bf16); }

}  // namespace nearwise::cpu::x86
HWY_POP_ATTRIBUTES
