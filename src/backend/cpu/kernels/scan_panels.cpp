// f32 scan: blocked products fused with selection. A tile of queries x base vectors stays in registers from
// the first multiplication to the comparison with each query's cutoff and is never stored. Only lanes that
// pass are written, to the query's candidate list.
//
// Lanes are base vectors, so the candidates of one query are compressed to consecutive entries. A tile is 6
// queries by 4 registers on targets with 32 registers (24 accumulators, 4 base, 1 broadcast), and by 2 on
// targets with 16.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/scan_panels.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using RowTag = hn::RebindToUnsigned<Tag>;
using Vector = hn::Vec<Tag>;

constexpr std::size_t lanes = hn::MaxLanes(Tag());
constexpr std::size_t tile_queries = 6;
constexpr std::size_t tile_vectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;
constexpr std::size_t tile_rows = tile_vectors * lanes;

struct TileScores {
  Vector of[tile_vectors];
};

// Appends the rows of a panel whose scores pass the query's cutoff. Takes a copy, since a reference to the
// accumulators would make the compiler keep them in memory.
HWY_NOINLINE void keep(const ScanArgs& args, std::size_t query, TileScores scores, std::uint32_t first_row) {
  const Tag df;
  const RowTag du;
  const auto cutoff = hn::Set(df, args.lists.cutoffs[query]);
  const auto end_row = hn::Set(du, args.end_row);
  float* const out_scores = args.lists.scores + query * args.lists.stride;
  std::uint32_t* const out_rows = args.lists.rows + query * args.lists.stride;
  std::size_t count = args.lists.counts[query];
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    const auto rows = hn::Iota(du, first_row + static_cast<std::uint32_t>(v * lanes));
    const auto pass = hn::And(hn::RebindMask(du, hn::Le(scores.of[v], cutoff)), hn::Lt(rows, end_row));
    hn::CompressStore(rows, pass, du, out_rows + count);
    count += hn::CompressStore(scores.of[v], hn::RebindMask(df, pass), df, out_scores + count);
  }
  args.lists.counts[query] = static_cast<std::uint32_t>(count);
  if (count + tile_rows > args.lists.capacity) args.make_room(args.owner, query);
}

// Computes the scores of a tile and passes those of each query to judge(q, scores).
template <typename Judge>
HWY_INLINE void multiply(const float* HWY_RESTRICT queries, const float* HWY_RESTRICT rows,
                         const float* HWY_RESTRICT biases, std::size_t dim, const Judge& judge) {
  const Tag df;
  Vector scores[tile_queries][tile_vectors];
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    const auto bias = hn::LoadU(df, biases + v * lanes);
    for (std::size_t q = 0; q < tile_queries; ++q) scores[q][v] = bias;
  }
  for (std::size_t i = 0; i < dim; ++i) {
    Vector row[tile_vectors];
    for (std::size_t v = 0; v < tile_vectors; ++v) row[v] = hn::LoadU(df, rows + i * tile_rows + v * lanes);
    for (std::size_t q = 0; q < tile_queries; ++q) {
      const auto element = hn::Set(df, queries[i * tile_queries + q]);
      for (std::size_t v = 0; v < tile_vectors; ++v)
        scores[q][v] = hn::NegMulAdd(element, row[v], scores[q][v]);
    }
  }
  for (std::size_t q = 0; q < tile_queries; ++q) judge(q, scores[q]);
}

HWY_INLINE Vector min_scores(const Vector (&scores)[tile_vectors]) {
  Vector least = scores[0];
  for (std::size_t v = 1; v < tile_vectors; ++v) least = hn::Min(least, scores[v]);
  return least;
}

HWY_INLINE TileScores copy_of(const Vector (&scores)[tile_vectors]) {
  TileScores copy;
  for (std::size_t v = 0; v < tile_vectors; ++v) copy.of[v] = scores[v];
  return copy;
}

HWY_INLINE void scan_tile(const ScanArgs& args, const float* queries, const float* rows, const float* biases,
                          std::size_t first_query, std::uint32_t first_row) {
  const Tag df;
  const auto judge = [&](std::size_t q, const Vector(&scores)[tile_vectors]) {
    const auto cutoff = hn::Set(df, args.lists.cutoffs[first_query + q]);
    if (HWY_UNLIKELY(!hn::AllFalse(df, hn::Le(min_scores(scores), cutoff))))
      keep(args, first_query + q, copy_of(scores), first_row);
  };
  multiply(queries, rows, biases, args.row_bytes / sizeof(float), judge);
}

// Takes a copy for the same reason as keep().
HWY_NOINLINE void keep_nearest(const NearestScanArgs& args, std::size_t query, TileScores scores,
                               std::uint32_t first_row) {
  HWY_ALIGN float values[tile_rows];
  for (std::size_t v = 0; v < tile_vectors; ++v) hn::Store(scores.of[v], Tag(), values + v * lanes);
  float best = args.best[query];
  float second = args.second[query];
  for (std::size_t i = 0; i < tile_rows; ++i) {
    if (!(values[i] < second)) continue;
    second = values[i];
    if (!(second < best)) continue;
    second = best;
    best = values[i];
    args.rows[query] = first_row + static_cast<std::uint32_t>(i);
  }
  args.best[query] = best;
  args.second[query] = second;
}

void scan_nearest(const NearestScanArgs& args) noexcept {
  const Tag df;
  const auto* const query_panels = reinterpret_cast<const float*>(args.query_panels);
  const auto* const base_panels = reinterpret_cast<const float*>(args.base_panels);
  const std::size_t dim = args.row_bytes / sizeof(float);
  for (std::size_t b = 0; b < args.base_panel_count; ++b) {
    const auto first_row = args.first_row + static_cast<std::uint32_t>(b * tile_rows);
    for (std::size_t p = 0; p < args.query_panel_count; ++p) {
      const auto judge = [&](std::size_t q, const Vector(&scores)[tile_vectors]) {
        const std::size_t query = p * tile_queries + q;
        const auto second = hn::Set(df, args.second[query]);
        if (HWY_UNLIKELY(!hn::AllFalse(df, hn::Lt(min_scores(scores), second))))
          keep_nearest(args, query, copy_of(scores), first_row);
      };
      multiply(query_panels + p * dim * tile_queries, base_panels + b * dim * tile_rows,
               args.biases + b * tile_rows, dim, judge);
    }
  }
}

void scan_panels(const ScanArgs& args) {
  const auto* const query_panels = reinterpret_cast<const float*>(args.query_panels);
  const auto* const base_panels = reinterpret_cast<const float*>(args.base_panels);
  const std::size_t dim = args.row_bytes / sizeof(float);
  // Base panels are the outer loop: one stays in L1 while the queries are read from L2.
  for (std::size_t b = 0; b < args.base_panel_count; ++b) {
    const float* const rows = base_panels + b * dim * tile_rows;
    const float* const biases = args.biases + b * tile_rows;
    const auto first_row = args.first_row + static_cast<std::uint32_t>(b * tile_rows);
    for (std::size_t p = 0; p < args.query_panel_count; ++p)
      scan_tile(args, query_panels + p * dim * tile_queries, rows, biases,
                args.first_query + p * tile_queries, first_row);
  }
}

const ScanKernel* f32_panels_kernel() {
  static constexpr ScanKernel kernel = {.query_encoding = Encoding::f32,
                                        .base_encoding = Encoding::f32,
                                        .query_width = tile_queries,
                                        .base_width = tile_rows,
                                        // A group of queries stays in the L2 cache for all base panels.
                                        .query_group_bytes = 192 << 10,
                                        .base_step_bytes = 4 << 20,
                                        .scan = scan_panels,
                                        .scan_nearest = scan_nearest};
  return &kernel;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(f32_panels_kernel);

const ScanKernel& f32_panels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(f32_panels_kernel), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
