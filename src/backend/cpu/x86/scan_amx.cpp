// Scans by AMX tile products whose scores are a bias of the base vector minus the product: bf16, and the
// integers of u8 and i8 vectors (amx_scan_loop.h).
#include "backend/cpu/x86/amx_scan_loop.h"
#include "backend/cpu/x86/scans.h"

HWY_PUSH_ATTRIBUTES(NEARWISE_TILE_ATTRIBUTES)
namespace nearwise::cpu::x86 {
namespace {

// Thresholds with rows and columns exchanged. Column q is a candidate of row r if bias_q - product <=
// cutoff_r, that is -cutoff_r - product <= -bias_q: the same running minimum over the rows with other
// constants. Both sides are widened by more than the rounding error of this rearrangement.
struct FloatExchange {
  alignas(64) float rows[step];  // -cutoff of each base row
  __m512 columns[2];             // -bias of each query

  HWY_INLINE void set_columns(const PairScanArgs& args, std::size_t place) {
    for (std::size_t half = 0; half < 2; ++half) {
      const __m512 bias = _mm512_loadu_ps(args.query_biases + place + half * side);
      const __m512 slack = _mm512_mul_ps(_mm512_abs_ps(bias), _mm512_set1_ps(0x1p-20F));
      columns[half] = _mm512_sub_ps(slack, bias);
    }
  }
  HWY_INLINE void set_rows(const float* cutoffs) {
    for (std::size_t half = 0; half < 2; ++half) {
      // NaN (no candidates) becomes the lowest cutoff: maxps returns its second operand.
      const __m512 cutoff =
          _mm512_max_ps(_mm512_loadu_ps(cutoffs + half * side), _mm512_set1_ps(-0x1.fp126F));
      const __m512 slack = _mm512_mul_ps(_mm512_abs_ps(cutoff), _mm512_set1_ps(0x1p-20F));
      _mm512_store_ps(rows + half * side, _mm512_sub_ps(_mm512_setzero_ps(), _mm512_add_ps(cutoff, slack)));
    }
  }
  HWY_INLINE static const float* column_biases(const PairScanArgs& args, std::size_t place) {
    return args.query_biases + place;
  }
  HWY_INLINE __m512 column(std::size_t half) const { return columns[half]; }
};

struct IntegerExchange {
  alignas(64) std::int32_t rows[step];
  __m512 columns[2];

  HWY_INLINE void set_columns(const PairScanArgs& args, std::size_t place) {
    for (std::size_t half = 0; half < 2; ++half) {
      // Rounded up, since the running minimum is rounded to nearest.
      const __m512 bias = _mm512_cvtepi32_ps(_mm512_sub_epi32(
          _mm512_setzero_si512(), _mm512_loadu_si512(args.half_query_biases + place + half * side)));
      columns[half] = _mm512_add_ps(bias, _mm512_mul_ps(_mm512_abs_ps(bias), _mm512_set1_ps(0x1p-20F)));
    }
  }
  HWY_INLINE void set_rows(const float* cutoffs) {
    const __m512 least = _mm512_set1_ps(-0x1p30F);
    const __m512 most = _mm512_set1_ps(0x1p30F);
    for (std::size_t half = 0; half < 2; ++half) {
      const __m512 cutoff = _mm512_min_ps(_mm512_max_ps(_mm512_loadu_ps(cutoffs + half * side), least), most);
      const __m512i whole = _mm512_cvt_roundps_epi32(cutoff, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
      _mm512_store_si512(rows + half * side, _mm512_sub_epi32(_mm512_setzero_si512(), whole));
    }
  }
  HWY_INLINE static const std::int32_t* column_biases(const PairScanArgs& args, std::size_t place) {
    return args.integer_query_biases + place;
  }
  HWY_INLINE __m512 column(std::size_t half) const { return columns[half]; }
};

struct Bf16Products {
  using Bias = float;
  using Exchange = FloatExchange;
  using Score = __m512;
  static const float* biases(const ScanArgs& args) { return args.biases; }
  static const float* quick_biases(const ScanArgs& args) { return args.biases; }
  HWY_INLINE static void multiply() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  HWY_INLINE static Score highest() { return _mm512_set1_ps(__builtin_inff()); }
  HWY_INLINE static Score set(float bias) { return _mm512_set1_ps(bias); }
  HWY_INLINE static Score load(const float* biases) { return _mm512_loadu_ps(biases); }
  HWY_INLINE static Score lower(Score least, Score bias, const std::int32_t* products) {
    return _mm512_min_ps(scores(bias, _mm512_load_si512(products)), least);
  }
  HWY_INLINE static __m512 as_float(Score least) { return least; }
  HWY_INLINE static __m512 scores(Score bias, __m512i products) {
    return _mm512_sub_ps(bias, _mm512_castsi512_ps(products));
  }
};

// The fast score floor(bias / 2) - product never exceeds the score, also after both are rounded to f32.
struct IntegerScores {
  using Bias = std::int32_t;
  using Exchange = IntegerExchange;
  using Score = __m512i;
  static const std::int32_t* biases(const ScanArgs& args) { return args.integer_biases; }
  static const std::int32_t* quick_biases(const ScanArgs& args) { return args.half_biases; }
  HWY_INLINE static Score highest() { return _mm512_set1_epi32(INT32_MAX); }
  HWY_INLINE static Score set(std::int32_t bias) { return _mm512_set1_epi32(bias); }
  HWY_INLINE static Score load(const std::int32_t* biases) { return _mm512_loadu_si512(biases); }
  HWY_INLINE static Score lower(Score least, Score bias, const std::int32_t* products) {
    return _mm512_min_epi32(_mm512_sub_epi32(bias, _mm512_load_si512(products)), least);
  }
  HWY_INLINE static __m512 as_float(Score least) { return _mm512_cvtepi32_ps(least); }
  HWY_INLINE static __m512 scores(Score bias, __m512i products) {
    const __m512i twice = _mm512_sub_epi32(bias, _mm512_add_epi32(products, products));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(twice), _mm512_set1_ps(0.5F));
  }
};

struct UnsignedProducts : IntegerScores {
  HWY_INLINE static void multiply() {
    _tile_dpbuud(0, 4, 6);
    _tile_dpbuud(1, 4, 7);
    _tile_dpbuud(2, 5, 6);
    _tile_dpbuud(3, 5, 7);
  }
};

struct SignedProducts : IntegerScores {
  HWY_INLINE static void multiply() {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
};

// Running minimum of each query's scores, per stored tile.
template <class Products>
struct Least {
  // Separate members: g++ keeps these in registers, unlike an array.
  typename Products::Score of_0, of_1, of_2, of_3;

  // Explicit, since an implicit constructor would be compiled without the target attributes of this file.
  HWY_INLINE Least()
      : of_0(Products::highest()),
        of_1(Products::highest()),
        of_2(Products::highest()),
        of_3(Products::highest()) {}

  HWY_INLINE void lower(const Stored& stored, const typename Products::Bias* biases, std::size_t row) {
    const std::size_t at = row * side;
    const auto upper = Products::set(biases[row]);
    const auto below = Products::set(biases[side + row]);
    of_0 = Products::lower(of_0, upper, stored.tile[0] + at);
    of_1 = Products::lower(of_1, upper, stored.tile[1] + at);
    of_2 = Products::lower(of_2, below, stored.tile[2] + at);
    of_3 = Products::lower(of_3, below, stored.tile[3] + at);
    // Prevents the compiler from moving this comparison after all tile products.
    asm volatile("" ::"v"(of_0), "v"(of_1), "v"(of_2), "v"(of_3));
  }
};

// Appends the rows of a stored tile that pass the cutoffs of its hit columns. Few columns are hit, most of
// them by one row: all rows of a column are compared at once.
template <class Products>
HWY_NOINLINE void keep(const ScanArgs& args, const std::int32_t* products,
                       const typename Products::Bias* biases, std::uint32_t first_row,
                       std::size_t first_query, unsigned columns, bool skip_self) {
  const CandidateLists& lists = args.lists;
  const __m512i rows = numbers(first_row, 1);
  __mmask16 there = rows_below(first_row, args.end_row);
  if (args.allowed != nullptr) there &= args.allowed[(first_row - args.first_row) / side];
  for (; columns != 0; columns &= columns - 1) {
    const auto column = static_cast<std::size_t>(std::countr_zero(columns));
    const std::size_t query = first_query + column;
    const __m512 scores = Products::scores(Products::load(biases), column_of(products, column));
    const __m512 cutoff = _mm512_set1_ps(lists.cutoffs[query]);
    __mmask16 pass = _mm512_mask_cmp_ps_mask(there, scores, cutoff, _CMP_LE_OQ);
    if (skip_self)
      pass = _mm512_mask_cmpneq_epi32_mask(pass, rows, _mm512_set1_epi32(static_cast<int>(query)));
    append_rows(args, query, pass, scores, rows);
  }
}

// The same with rows and columns exchanged: hit columns become candidates of the tile's rows.
template <class Products>
HWY_NOINLINE void keep_columns(const PairScanArgs& args, const std::int32_t* products,
                               const typename Products::Bias* column_biases, std::uint32_t first_row,
                               std::size_t first_query, unsigned columns) {
  const CandidateLists& lists = args.lists;
  const __mmask16 there = rows_below(first_row, args.end_row);
  for (; columns != 0; columns &= columns - 1) {
    const auto column = static_cast<std::size_t>(std::countr_zero(columns));
    const auto candidate = static_cast<std::uint32_t>(first_query + column);
    if (candidate >= args.end_row) return;
    const __m512 scores = Products::scores(Products::set(column_biases[column]), column_of(products, column));
    const __m512 cutoffs = _mm512_loadu_ps(lists.cutoffs + first_row);
    unsigned pass = _mm512_mask_cmp_ps_mask(there, scores, cutoffs, _CMP_LE_OQ);
    alignas(64) float values[side];
    _mm512_store_ps(values, scores);
    for (; pass != 0; pass &= pass - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(pass));
      const std::size_t query = first_row + row;
      const std::size_t end = query * lists.stride + lists.counts[query]++;
      lists.scores[end] = values[row];
      lists.rows[end] = candidate;
      if (lists.counts[query] + step > lists.capacity) args.make_room(args.owner, query);
    }
  }
}

template <class Products>
HWY_INLINE Hits hits_of(const Least<Products>& least, __m512 left, __m512 right) {
  return {{_mm512_cmp_ps_mask(Products::as_float(least.of_0), left, _CMP_LE_OQ),
           _mm512_cmp_ps_mask(Products::as_float(least.of_1), right, _CMP_LE_OQ),
           _mm512_cmp_ps_mask(Products::as_float(least.of_2), left, _CMP_LE_OQ),
           _mm512_cmp_ps_mask(Products::as_float(least.of_3), right, _CMP_LE_OQ)}};
}

template <class Products>
HWY_INLINE Hits hits_of_queries(const ScanArgs& args, const Least<Products>& least, std::size_t first_query) {
  const float* const cutoffs = args.lists.cutoffs + first_query;
  return hits_of(least, _mm512_loadu_ps(cutoffs), _mm512_loadu_ps(cutoffs + side));
}

template <class Products>
HWY_INLINE void keep_hits(const ScanArgs& args, const Hits& hits, const Stored& stored, std::size_t place,
                          std::size_t first_query, bool skip_self) {
  if (__builtin_expect(hits.none(), 1)) return;
  for (std::size_t tile = 0; tile < 4; ++tile) {
    if (hits.tile[tile] == 0) continue;
    const std::size_t row = place + tile / 2 * side;
    keep<Products>(args, stored.tile[tile], Products::biases(args) + row,
                   args.first_row + static_cast<std::uint32_t>(row), first_query + tile % 2 * side,
                   hits.tile[tile], skip_self);
  }
}

template <class Products>
struct BiasSelection {
  using Least = x86::Least<Products>;
  struct Queries {
    HWY_INLINE Queries(const ScanArgs&, std::size_t) {}
  };
  HWY_INLINE static void multiply() { Products::multiply(); }
  HWY_INLINE static const typename Products::Bias* rows(const ScanArgs& args, std::size_t place) {
    return Products::quick_biases(args) + place;
  }
  HWY_INLINE static void lower(Least& least, const Queries&, const Stored& stored,
                               const typename Products::Bias* biases, std::size_t row) {
    least.lower(stored, biases, row);
  }
  HWY_INLINE static void keep(const ScanArgs& args, const Queries&, const Least& least, const Stored& stored,
                              std::size_t place, std::size_t first_query) {
    keep_hits<Products>(args, hits_of_queries(args, least, first_query), stored, place, first_query, false);
  }
};

template <class Products, std::size_t rows_per_step>
struct PairScan {
  static void run(const PairScanArgs& args) {
    const AmxScope tiles;
    Stored stored[2];
    typename Products::Exchange exchange;
    const std::size_t depth = args.row_bytes / line;
    const std::size_t panel_bytes = step * args.row_bytes;
    for (std::size_t p = 0; p < args.query_panel_count; ++p) {
      const std::byte* const queries = args.query_panels + p * panel_bytes;
      const std::size_t first_query = args.first_query + p * step;
      const std::size_t first_panel = args.diagonal ? p : 0;
      exchange.set_columns(args, p * step);
      multiply<Products, rows_per_step>(args.base_panels + first_panel * panel_bytes, queries, depth,
                                        [](std::size_t) {});
      store_tiles(stored[0]);
      std::size_t current = 0;
      for (std::size_t b = first_panel + 1; b <= args.base_panel_count; ++b, current ^= 1) {
        const std::size_t place = (b - 1) * step;
        const std::uint32_t first_row = args.first_row + static_cast<std::uint32_t>(place);
        const auto* const biases = Products::quick_biases(args) + place;
        exchange.set_rows(args.lists.cutoffs + first_row);
        Least<Products> least;
        Least<Products> exchanged;
        const auto compare = [&](std::size_t row) {
          least.lower(stored[current], biases, row);
          exchanged.lower(stored[current], exchange.rows, row);
        };
        if (b < args.base_panel_count)
          multiply<Products, rows_per_step>(args.base_panels + b * panel_bytes, queries, depth, compare);
        else
          for (std::size_t row = 0; row < side; ++row) compare(row);
        // The product of a panel with itself contains every pair twice: one direction is enough.
        const bool itself = args.diagonal && b - 1 == p;
        // Both are computed before the calls below: vectors live across a call would be kept in memory.
        const Hits hits = hits_of_queries(args, least, first_query);
        const Hits exchanged_hits = hits_of(exchanged, exchange.column(0), exchange.column(1));
        keep_hits<Products>(args, hits, stored[current], place, first_query, itself);
        if (!itself) keep_exchanged(args, exchanged_hits, stored[current], first_row, p * step);
        if (b < args.base_panel_count) store_tiles(stored[current ^ 1]);
      }
    }
  }

  HWY_INLINE static void keep_exchanged(const PairScanArgs& args, const Hits& hits, const Stored& stored,
                                        std::uint32_t first_row, std::size_t query_place) {
    if (__builtin_expect(hits.none(), 1)) return;
    for (std::size_t tile = 0; tile < 4; ++tile) {
      if (hits.tile[tile] == 0) continue;
      const std::size_t place = query_place + tile % 2 * side;
      keep_columns<Products>(args, stored.tile[tile], Products::Exchange::column_biases(args, place),
                             first_row + static_cast<std::uint32_t>(tile / 2 * side),
                             args.first_query + place, hits.tile[tile]);
    }
  }
};

// Two smallest scores of 16 queries and the row of the smallest.
struct TwoLeast {
  __m512 best, second;
  __m512i rows;

  HWY_INLINE void load(const NearestScanArgs& args, std::size_t query) {
    best = _mm512_loadu_ps(args.best + query);
    second = _mm512_loadu_ps(args.second + query);
    rows = _mm512_loadu_si512(args.rows + query);
  }
  HWY_INLINE void store(const NearestScanArgs& args, std::size_t query) const {
    _mm512_storeu_ps(args.best + query, best);
    _mm512_storeu_ps(args.second + query, second);
    _mm512_storeu_si512(args.rows + query, rows);
  }
  HWY_INLINE void look(float bias, const std::int32_t* products, std::uint32_t row) {
    const __m512 scores = Bf16Products::scores(_mm512_set1_ps(bias), _mm512_load_si512(products));
    const __mmask16 less = _mm512_cmp_ps_mask(scores, best, _CMP_LT_OQ);
    second = _mm512_min_ps(_mm512_max_ps(scores, best), second);
    best = _mm512_min_ps(scores, best);
    rows = _mm512_mask_set1_epi32(rows, less, static_cast<int>(row));
  }
};

// Compares every score with the two smallest so far while the next product is computed.
template <class Products, std::size_t rows_per_step>
struct NearestScan {
  static void run(const NearestScanArgs& args) noexcept {
    const AmxScope tiles;
    Stored stored[2];
    const std::size_t depth = args.row_bytes / line;
    const std::size_t panel_bytes = step * args.row_bytes;
    for (std::size_t p = 0; p < args.query_panel_count; ++p) {
      const std::byte* const queries = args.query_panels + p * panel_bytes;
      TwoLeast left;
      TwoLeast right;
      left.load(args, p * step);
      right.load(args, p * step + side);
      multiply<Products, rows_per_step>(args.base_panels, queries, depth, [](std::size_t) {});
      store_tiles(stored[0]);
      std::size_t current = 0;
      for (std::size_t b = 1; b <= args.base_panel_count; ++b, current ^= 1) {
        const float* const biases = args.biases + (b - 1) * step;
        const std::uint32_t first_row = args.first_row + static_cast<std::uint32_t>((b - 1) * step);
        const auto compare = [&](std::size_t row) {
          const std::int32_t* const products = stored[current].tile[0] + row * side;
          constexpr std::size_t tile = side * side;
          const auto number = first_row + static_cast<std::uint32_t>(row);
          left.look(biases[row], products, number);
          right.look(biases[row], products + tile, number);
          left.look(biases[side + row], products + 2 * tile, number + side);
          right.look(biases[side + row], products + 3 * tile, number + side);
          // Prevents the compiler from moving this comparison after all tile products.
          asm volatile("" ::"v"(left.second), "v"(left.rows), "v"(right.second), "v"(right.rows));
        };
        if (b < args.base_panel_count) {
          multiply<Products, rows_per_step>(args.base_panels + b * panel_bytes, queries, depth, compare);
          store_tiles(stored[current ^ 1]);
        } else {
          for (std::size_t row = 0; row < side; ++row) compare(row);
        }
      }
      left.store(args, p * step);
      right.store(args, p * step + side);
    }
  }
};

template <class Products>
ScanKernel kernel(Encoding encoding) {
  ScanKernel tiles = tile_kernel(encoding, scan_at_depth<BiasSelection<Products>, Scan, ScanArgs>);
  tiles.scan_pairs = scan_at_depth<Products, PairScan, PairScanArgs>;
  return tiles;
}

}  // namespace

ScanKernel integer_tiles(ElementType type) {
  return type == ElementType::u8 ? kernel<UnsignedProducts>(Encoding::byte)
                                 : kernel<SignedProducts>(Encoding::byte);
}

ScanKernel bf16_tiles() {
  ScanKernel tiles = kernel<Bf16Products>(Encoding::bf16);
  tiles.scan_nearest = [](const NearestScanArgs& args) noexcept {
    scan_at_depth<Bf16Products, NearestScan>(args);
  };
  return tiles;
}

}  // namespace nearwise::cpu::x86
HWY_POP_ATTRIBUTES
