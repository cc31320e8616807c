// Scan of scaled 8-bit integers with AVX2, AVX-VNNI, SSE4, and AVX-512 without VNNI (x86/scan_dots.cpp has
// the one with).
//
// Units of 4 bytes are multiplied: unsigned ones of the rows by signed ones of the queries. vpmaddubsw adds
// two products in 16 bits, which saturate: queries have 7 bits, 2 * 255 * 63 < 2^15. AVX-VNNI adds four in 32
// bits.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/scan_scaled.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <cstring>

#include "backend/cpu/kernels/score_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4

constexpr std::size_t unit = 4;

using SumTag = hn::RebindToSigned<Tag>;
using Sum = hn::Vec<SumTag>;

template <std::size_t queries>
struct TileSums {
  Sum of[queries][tile_vectors];
};

// Four products of each lane, added to its sum.
HWY_INLINE Sum add_products(Sum sum, Sum rows, Sum query) {
#if HWY_TARGET == HWY_AVX3
  const __m512i pairs = _mm512_maddubs_epi16(rows.raw, query.raw);
  return Sum{_mm512_add_epi32(sum.raw, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
#elif HWY_TARGET == HWY_AVX2
  const __m256i pairs = _mm256_maddubs_epi16(rows.raw, query.raw);
  return Sum{_mm256_add_epi32(sum.raw, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))};
#else
  const __m128i pairs = _mm_maddubs_epi16(rows.raw, query.raw);
  return Sum{_mm_add_epi32(sum.raw, _mm_madd_epi16(pairs, _mm_set1_epi16(1)))};
#endif
}

// The sums of a tile. Functions of their own, without calls, so that the compiler keeps the sums in
// registers.
struct Words {
  // Products of pairs need registers too.
  static constexpr std::size_t queries = HWY_TARGET == HWY_AVX3 ? tile_queries : 4;

  static HWY_NOINLINE void multiply(const std::byte* HWY_RESTRICT panel, const std::byte* HWY_RESTRICT rows,
                                    const std::int32_t* HWY_RESTRICT starts, std::size_t units,
                                    TileSums<queries>& out) {
    const SumTag di;
    Sum sums[queries][tile_vectors];
    HWY_UNROLL(6)
    for (std::size_t q = 0; q < queries; ++q) HWY_UNROLL(6)
    for (std::size_t v = 0; v < tile_vectors; ++v) sums[q][v] = hn::Set(di, starts[q]);
    for (std::size_t u = 0; u < units; ++u) {
      Sum row[tile_vectors];
      HWY_UNROLL(6)
      for (std::size_t v = 0; v < tile_vectors; ++v)
        row[v] = hn::LoadU(di, reinterpret_cast<const std::int32_t*>(rows) + u * tile_rows + v * lanes);
      HWY_UNROLL(6)
      for (std::size_t q = 0; q < queries; ++q) {
        const Sum query = hn::Set(di, reinterpret_cast<const std::int32_t*>(panel)[u * queries + q]);
        HWY_UNROLL(6)
        for (std::size_t v = 0; v < tile_vectors; ++v) sums[q][v] = add_products(sums[q][v], row[v], query);
      }
    }
    HWY_UNROLL(6)
    for (std::size_t q = 0; q < queries; ++q) HWY_UNROLL(6)
    for (std::size_t v = 0; v < tile_vectors; ++v) out.of[q][v] = sums[q][v];
  }
};

#if HWY_TARGET == HWY_AVX2
struct Dots {
  static constexpr std::size_t queries = tile_queries;

  __attribute__((target("avx2,fma,avxvnni"))) static HWY_NOINLINE void multiply(
      const std::byte* HWY_RESTRICT panel, const std::byte* HWY_RESTRICT rows,
      const std::int32_t* HWY_RESTRICT starts, std::size_t units, TileSums<queries>& out) {
    __m256i sums[queries][tile_vectors];
    HWY_UNROLL(6)
    for (std::size_t q = 0; q < queries; ++q) HWY_UNROLL(6)
    for (std::size_t v = 0; v < tile_vectors; ++v) sums[q][v] = _mm256_set1_epi32(starts[q]);
    for (std::size_t u = 0; u < units; ++u) {
      __m256i row[tile_vectors];
      HWY_UNROLL(6)
      for (std::size_t v = 0; v < tile_vectors; ++v)
        row[v] =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + (u * tile_rows + v * lanes) * unit));
      HWY_UNROLL(6)
      for (std::size_t q = 0; q < queries; ++q) {
        const __m256i query =
            _mm256_set1_epi32(reinterpret_cast<const std::int32_t*>(panel)[u * queries + q]);
        HWY_UNROLL(6)
        for (std::size_t v = 0; v < tile_vectors; ++v)
          sums[q][v] = _mm256_dpbusd_avx_epi32(sums[q][v], row[v], query);
      }
    }
    HWY_UNROLL(6)
    for (std::size_t q = 0; q < queries; ++q) HWY_UNROLL(6)
    for (std::size_t v = 0; v < tile_vectors; ++v) out.of[q][v] = Sum{sums[q][v]};
  }
};
#endif

template <class Products>
void scan_scaled(const ScanArgs& args) {
  const Tag df;
  const std::size_t units = args.row_bytes / unit;
  constexpr std::size_t queries = Products::queries;
  TileSums<queries> sums;
  TileScores scores;
  for (std::size_t b = 0; b < args.base_panel_count; ++b) {
    const std::size_t place = b * tile_rows;
    const auto first_row = args.first_row + static_cast<std::uint32_t>(place);
    for (std::size_t p = 0; p < args.query_panel_count; ++p) {
      const std::size_t first_query = args.first_query + p * queries;
      Products::multiply(args.query_panels + p * queries * args.row_bytes,
                         args.base_panels + b * tile_rows * args.row_bytes, args.query_starts + first_query,
                         units, sums);
      for (std::size_t q = 0; q < queries; ++q) {
        const auto slack = hn::Set(df, args.lists.slack_factors[first_query + q]);
        const auto scale = hn::Set(df, args.query_scales[first_query + q]);
        for (std::size_t v = 0; v < tile_vectors; ++v) {
          const std::size_t at = place + v * lanes;
          const auto bias =
              hn::NegMulAdd(slack, hn::LoadU(df, args.row_residuals + at), hn::LoadU(df, args.biases + at));
          const auto product = hn::Mul(hn::ConvertTo(df, sums.of[q][v]), hn::LoadU(df, args.row_scales + at));
          scores.of[v] = hn::NegMulAdd(scale, product, bias);
        }
        keep_if_any_passes(args, first_query + q, scores, first_row);
      }
    }
  }
}

template <class Products>
constexpr ScanKernel scaled_kernel(Encoding query_encoding) {
  return {.query_encoding = query_encoding,
          .base_encoding = Encoding::scaled_unsigned_byte,
          .query_width = Products::queries,
          .base_width = tile_rows,
          .query_group_bytes = 192 << 10,
          .base_step_bytes = 4 << 20,
          .scan = scan_scaled<Products>};
}

const ScanKernel* scaled_panels_kernel(Extension extension) {
  static constexpr ScanKernel words = scaled_kernel<Words>(Encoding::scaled_seven_bits);
#if HWY_TARGET == HWY_AVX2
  static constexpr ScanKernel dots = scaled_kernel<Dots>(Encoding::scaled_byte);
  if (extension == Extension::narrow_integer_dots) return &dots;
#endif
  return &words;
}

#else

const ScanKernel* scaled_panels_kernel(Extension) { return nullptr; }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(scaled_panels_kernel);

const ScanKernel* scaled_panels(InstructionSet set) {
  return select(HWY_DISPATCH_TABLE(scaled_panels_kernel), set)(set.extension);
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
