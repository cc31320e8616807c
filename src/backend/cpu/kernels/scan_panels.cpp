// f32 scan: blocked products fused with selection. The scores of a tile of queries x base vectors are
// computed in registers and compared with each query's cutoff. Only lanes that pass are written, to the
// query's candidate list.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/scan_panels.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include "backend/cpu/kernels/score_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

struct Tile {
  TileScores of[tile_queries];
};

// Computes the scores of a tile. A function of its own, without calls, so that the compiler keeps the
// accumulators in registers.
HWY_NOINLINE void multiply(const float* HWY_RESTRICT queries, const float* HWY_RESTRICT rows,
                           const float* HWY_RESTRICT biases, std::size_t dim, Tile& out) {
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
  for (std::size_t q = 0; q < tile_queries; ++q)
    for (std::size_t v = 0; v < tile_vectors; ++v) out.of[q].of[v] = scores[q][v];
}

// Takes a copy, since a reference to the scores would make the compiler keep them in memory.
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
  Tile tile;
  for (std::size_t b = 0; b < args.base_panel_count; ++b) {
    const auto first_row = args.first_row + static_cast<std::uint32_t>(b * tile_rows);
    for (std::size_t p = 0; p < args.query_panel_count; ++p) {
      multiply(query_panels + p * dim * tile_queries, base_panels + b * dim * tile_rows,
               args.biases + b * tile_rows, dim, tile);
      for (std::size_t q = 0; q < tile_queries; ++q) {
        const std::size_t query = p * tile_queries + q;
        const auto second = hn::Set(df, args.second[query]);
        if (HWY_UNLIKELY(!hn::AllFalse(df, hn::Lt(min_scores(tile.of[q]), second))))
          keep_nearest(args, query, tile.of[q], first_row);
      }
    }
  }
}

void scan_panels(const ScanArgs& args) {
  const auto* const query_panels = reinterpret_cast<const float*>(args.query_panels);
  const auto* const base_panels = reinterpret_cast<const float*>(args.base_panels);
  const std::size_t dim = args.row_bytes / sizeof(float);
  Tile tile;
  // Base panels are the outer loop: one stays in L1 while the queries are read from L2.
  for (std::size_t b = 0; b < args.base_panel_count; ++b) {
    const float* const rows = base_panels + b * dim * tile_rows;
    const float* const biases = args.biases + b * tile_rows;
    const auto first_row = args.first_row + static_cast<std::uint32_t>(b * tile_rows);
    for (std::size_t p = 0; p < args.query_panel_count; ++p) {
      multiply(query_panels + p * dim * tile_queries, rows, biases, dim, tile);
      for (std::size_t q = 0; q < tile_queries; ++q)
        keep_if_any_passes(args, args.first_query + p * tile_queries + q, tile.of[q], first_row);
    }
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
