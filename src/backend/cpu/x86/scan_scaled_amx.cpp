// Scan of scaled 8-bit integers by AMX tile products (amx_scan_loop.h).
//
// A score is bias - residual * slack_factor - query scale * row scale * product. The running minimum leaves
// out the second term, four operations for 16 scores instead of five; the cutoff is raised by it instead, for
// the largest residual of the step. Queries that pass so have their scores computed in full.
#include "backend/cpu/x86/amx_scan_loop.h"
#include "backend/cpu/x86/scans.h"

HWY_PUSH_ATTRIBUTES(NEARWISE_TILE_ATTRIBUTES)
namespace nearwise::cpu::x86 {
namespace {

struct ScaledSelection {
  struct Queries {
    __m512 left, right;  // scales

    HWY_INLINE Queries(const ScanArgs& args, std::size_t first_query)
        : left(_mm512_loadu_ps(args.query_scales + first_query)),
          right(_mm512_loadu_ps(args.query_scales + first_query + side)) {}
  };

  struct Rows {
    const float* scales;
    const float* biases;
  };

  // Separate members: g++ keeps these in registers, unlike an array.
  struct Least {
    __m512 of_0, of_1, of_2, of_3;

    HWY_INLINE Least() : of_0(_mm512_set1_ps(__builtin_inff())), of_1(of_0), of_2(of_0), of_3(of_0) {}
  };

  HWY_INLINE static void multiply() {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }

  HWY_INLINE static Rows rows(const ScanArgs& args, std::size_t place) {
    return {args.row_scales + place, args.biases + place};
  }

  HWY_INLINE static __m512 score(__m512 bias, __m512 row_scale, __m512 query_scale, __m512i product) {
    return _mm512_fnmadd_ps(query_scale, _mm512_mul_ps(_mm512_cvtepi32_ps(product), row_scale), bias);
  }

  HWY_INLINE static void lower(Least& least, const Queries& queries, const Stored& stored, const Rows& rows,
                               std::size_t row) {
    const std::size_t at = row * side;
    const auto lowered = [at](__m512 so_far, __m512 bias, __m512 scale, __m512 query_scale,
                              const std::int32_t* tile) {
      return _mm512_min_ps(score(bias, scale, query_scale, _mm512_load_si512(tile + at)), so_far);
    };
    const __m512 upper_bias = _mm512_set1_ps(rows.biases[row]);
    const __m512 upper_scale = _mm512_set1_ps(rows.scales[row]);
    least.of_0 = lowered(least.of_0, upper_bias, upper_scale, queries.left, stored.tile[0]);
    least.of_1 = lowered(least.of_1, upper_bias, upper_scale, queries.right, stored.tile[1]);
    const __m512 lower_bias = _mm512_set1_ps(rows.biases[side + row]);
    const __m512 lower_scale = _mm512_set1_ps(rows.scales[side + row]);
    least.of_2 = lowered(least.of_2, lower_bias, lower_scale, queries.left, stored.tile[2]);
    least.of_3 = lowered(least.of_3, lower_bias, lower_scale, queries.right, stored.tile[3]);
    // Prevents the compiler from moving this comparison after all tile products.
    asm volatile("" ::"v"(least.of_0), "v"(least.of_1), "v"(least.of_2), "v"(least.of_3));
  }

  // The cutoff for scores without the term of the residual, raised by more than the rounding errors of both
  // terms, which may cancel out.
  HWY_INLINE static __m512 raised_cutoff(const ScanArgs& args, std::size_t query, __m512 most_residual) {
    const __m512 cutoff = _mm512_loadu_ps(args.lists.cutoffs + query);
    const __m512 slack = _mm512_mul_ps(_mm512_loadu_ps(args.lists.slack_factors + query), most_residual);
    const __m512 terms = _mm512_add_ps(_mm512_abs_ps(cutoff), slack);
    return _mm512_fmadd_ps(terms, _mm512_set1_ps(0x1p-20F), _mm512_add_ps(cutoff, slack));
  }

  HWY_INLINE static void keep(const ScanArgs& args, const Queries&, const Least& least, const Stored& stored,
                              std::size_t place, std::size_t first_query) {
    const float* const residuals = args.row_residuals + place;
    const __m512 most_residual = _mm512_set1_ps(
        _mm512_reduce_max_ps(_mm512_max_ps(_mm512_loadu_ps(residuals), _mm512_loadu_ps(residuals + side))));
    const __m512 left = raised_cutoff(args, first_query, most_residual);
    const __m512 right = raised_cutoff(args, first_query + side, most_residual);
    const Hits hits = {{_mm512_cmp_ps_mask(least.of_0, left, _CMP_LE_OQ),
                        _mm512_cmp_ps_mask(least.of_1, right, _CMP_LE_OQ),
                        _mm512_cmp_ps_mask(least.of_2, left, _CMP_LE_OQ),
                        _mm512_cmp_ps_mask(least.of_3, right, _CMP_LE_OQ)}};
    if (__builtin_expect(hits.none(), 1)) return;
    for (std::size_t tile = 0; tile < 4; ++tile)
      if (hits.tile[tile] != 0)
        keep_columns(args, stored.tile[tile], place + tile / 2 * side, first_query + tile % 2 * side,
                     hits.tile[tile]);
  }

  // Appends the rows of a stored tile whose scores in full pass the cutoffs of its hit columns.
  HWY_NOINLINE static void keep_columns(const ScanArgs& args, const std::int32_t* products, std::size_t place,
                                        std::size_t first_query, unsigned columns) {
    const std::uint32_t first_row = args.first_row + static_cast<std::uint32_t>(place);
    const __m512i rows = numbers(first_row, 1);
    const __mmask16 there = rows_below(first_row, args.end_row);
    const __m512 biases = _mm512_loadu_ps(args.biases + place);
    const __m512 scales = _mm512_loadu_ps(args.row_scales + place);
    const __m512 residuals = _mm512_loadu_ps(args.row_residuals + place);
    for (; columns != 0; columns &= columns - 1) {
      const auto column = static_cast<std::size_t>(std::countr_zero(columns));
      const std::size_t query = first_query + column;
      const __m512 slack = _mm512_set1_ps(args.lists.slack_factors[query]);
      const __m512 scores = score(_mm512_fnmadd_ps(slack, residuals, biases), scales,
                                  _mm512_set1_ps(args.query_scales[query]), column_of(products, column));
      const __m512 cutoff = _mm512_set1_ps(args.lists.cutoffs[query]);
      append_rows(args, query, _mm512_mask_cmp_ps_mask(there, scores, cutoff, _CMP_LE_OQ), scores, rows);
    }
  }
};

}  // namespace

ScanKernel scaled_tiles() {
  return tile_kernel(Encoding::scaled_byte, scan_at_depth<ScaledSelection, Scan, ScanArgs>);
}

}  // namespace nearwise::cpu::x86
HWY_POP_ATTRIBUTES
