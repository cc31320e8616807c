// The loop of a scan by AMX tiles: products of base vectors and queries, whose scores are compared with the
// cutoffs while the next step's products are computed. Columns are queries: a running minimum over the rows
// and one comparison reject a tile without hits.
#pragma once

#include <algorithm>
#include <bit>

#include "backend/cpu/x86/amx_products.h"
#include "backend/cpu/x86/amx_scope.h"

HWY_PUSH_ATTRIBUTES(NEARWISE_TILE_ATTRIBUTES)
namespace nearwise::cpu::x86 {

// Appends the rows of a tile that pass as candidates of a query.
HWY_INLINE void append_rows(const ScanArgs& args, std::size_t query, __mmask16 pass, __m512 scores,
                            __m512i rows) {
  const CandidateLists& lists = args.lists;
  const std::size_t end = query * lists.stride + lists.counts[query];
  _mm512_storeu_ps(lists.scores + end, _mm512_maskz_compress_ps(pass, scores));
  _mm512_storeu_si512(lists.rows + end, _mm512_maskz_compress_epi32(pass, rows));
  lists.counts[query] += static_cast<std::uint32_t>(std::popcount(static_cast<unsigned>(pass)));
  if (lists.counts[query] + step > lists.capacity) args.make_room(args.owner, query);
}

// Tiles that contain a passing score. A comparison with a NaN cutoff (no candidates) fails.
struct Hits {
  unsigned tile[4];
  HWY_INLINE bool none() const { return (tile[0] | tile[1] | tile[2] | tile[3]) == 0; }
};

// Scans for Selection, which compares the stored products of a step:
//   multiply()                                  adds the products of tiles 4, 5 and 6, 7 to tiles 0 to 3
//   Queries(args, first_query)                  what is constant for 32 queries
//   rows(args, place)                           where the constants of a step's base vectors are
//   lower(least, queries, stored, rows, row)    compares one row of each tile
//   keep(args, queries, least, stored, place, first_query)
template <class Selection, std::size_t rows_per_step>
struct Scan {
  static void run(const ScanArgs& args) {
    const AmxScope tiles;
    Stored stored[2];
    const std::size_t depth = args.row_bytes / line;
    const std::size_t panel_bytes = step * args.row_bytes;
    // Some base panels stay in L1 while the queries are read from L2.
    constexpr std::size_t chunk_bytes = 16 << 10;
    const std::size_t chunk = std::max<std::size_t>(1, chunk_bytes / panel_bytes);
    std::size_t current = 0;
    std::size_t place = 0;  // of the products in stored[current]
    std::size_t first_query = args.first_query;
    bool is_stored = false;
    for (std::size_t c = 0; c < args.base_panel_count; c += chunk) {
      const std::size_t end = std::min(args.base_panel_count, c + chunk);
      for (std::size_t p = 0; p < args.query_panel_count; ++p) {
        const std::byte* const panel = args.query_panels + p * panel_bytes;
        for (std::size_t b = c; b < end; ++b) {
          const std::byte* const base = args.base_panels + b * panel_bytes;
          if (is_stored) {
            const typename Selection::Queries queries(args, first_query);
            const auto rows = Selection::rows(args, place);
            typename Selection::Least least;
            multiply<Selection, rows_per_step>(base, panel, depth, [&](std::size_t row) {
              Selection::lower(least, queries, stored[current], rows, row);
            });
            Selection::keep(args, queries, least, stored[current], place, first_query);
          } else {
            multiply<Selection, rows_per_step>(base, panel, depth, [](std::size_t) {});
          }
          current ^= 1;
          store_tiles(stored[current]);
          place = b * step;
          first_query = args.first_query + p * step;
          is_stored = true;
        }
      }
    }
    if (!is_stored) return;
    const typename Selection::Queries queries(args, first_query);
    const auto rows = Selection::rows(args, place);
    typename Selection::Least least;
    for (std::size_t row = 0; row < side; ++row) Selection::lower(least, queries, stored[current], rows, row);
    Selection::keep(args, queries, least, stored[current], place, first_query);
  }
};

template <class Policy, template <class, std::size_t> class Kind, class Args>
void scan_at_depth(const Args& args) {
  const std::size_t depth = args.row_bytes / line;
  if (depth >= 16) return Kind<Policy, 1>::run(args);
  if (depth >= 8) return Kind<Policy, 2>::run(args);
  if (depth >= 4) return Kind<Policy, 4>::run(args);
  if (depth >= 2) return Kind<Policy, 8>::run(args);
  Kind<Policy, 16>::run(args);
}

// Products by tiles of 8-bit or bf16 elements; both sides are encoded alike.
inline ScanKernel tile_kernel(Encoding encoding, void (*scan)(const ScanArgs&)) {
  return {.query_encoding = encoding,
          .base_encoding = encoding,
          .query_width = step,
          .base_width = step,
          .query_unit_bytes = 4,
          .base_unit_bytes = line,
          .row_granule_bytes = line,
          // Queries and base vectors of a call must fit the L2 cache together.
          .query_group_bytes = 512 << 10,
          .base_step_bytes = 512 << 10,
          .scan = scan};
}

}  // namespace nearwise::cpu::x86
HWY_POP_ATTRIBUTES
