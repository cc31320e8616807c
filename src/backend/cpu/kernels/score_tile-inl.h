// A tile of scores in registers, and what is kept of it. Included once per target, as Highway's -inl files
// are.
//
// Lanes are base vectors, so the candidates of one query are compressed to consecutive entries. A tile is 6
// queries by 4 registers on targets with 32 registers (24 accumulators, 4 base, 1 broadcast), and by 2 on
// targets with 16.
#if defined(NEARWISE_SCORE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NEARWISE_SCORE_TILE_INL_H_
#undef NEARWISE_SCORE_TILE_INL_H_
#else
#define NEARWISE_SCORE_TILE_INL_H_
#endif

#include "backend/cpu/kernels/kernels.h"
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

// Appends the rows of a panel whose scores pass the query's cutoff.
inline HWY_NOINLINE void keep(const ScanArgs& args, std::size_t query, TileScores scores,
                              std::uint32_t first_row) {
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

HWY_INLINE Vector min_scores(const TileScores& scores) {
  Vector least = scores.of[0];
  for (std::size_t v = 1; v < tile_vectors; ++v) least = hn::Min(least, scores.of[v]);
  return least;
}

HWY_INLINE void keep_if_any_passes(const ScanArgs& args, std::size_t query, const TileScores& scores,
                                   std::uint32_t first_row) {
  const Tag df;
  const auto cutoff = hn::Set(df, args.lists.cutoffs[query]);
  if (HWY_UNLIKELY(!hn::AllFalse(df, hn::Le(min_scores(scores), cutoff))))
    keep(args, query, scores, first_row);
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
