// Nearest of up to 256 short codewords. Squared differences are summed in f32, one codeword per lane. All
// terms are positive, so the relative error of a sum is bounded: codewords whose sum exceeds the minimum by
// more than the bound are not the nearest. Usually one codeword is left; otherwise the reported distances of
// the remaining ones decide. The result does not depend on the instruction set, although the sums do.
#include "backend/cpu/kernels/codes/codewords.h"

#include "backend/cpu/kernels/targets.h"
#include "core/distance.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/codes/codewords.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using DoubleTag = hn::CappedTag<double, distance_lanes>;
using Vector = hn::Vec<FloatTag>;

constexpr std::size_t lanes = hn::MaxLanes(FloatTag());
constexpr std::size_t double_lanes = hn::MaxLanes(DoubleTag());
constexpr std::size_t word_bits = 64;
// Rows that share the loads of codewords; with two registers of codewords there are eight accumulators.
constexpr std::size_t rows_at_once = 4;

// Sums of squared differences of `rows_at_once` rows to all codewords, and the minimum of each row.
// fixed_dim: the dimension if known at compile time, else 0.
template <std::size_t vectors, std::size_t fixed_dim>
HWY_INLINE void score(const CodewordsView& codewords, const float* HWY_RESTRICT rows, std::size_t stride,
                      float (*HWY_RESTRICT scores)[max_codewords], float* HWY_RESTRICT least) {
  const FloatTag df;
  Vector lowest[rows_at_once];
  for (Vector& vector : lowest) vector = hn::Set(df, std::numeric_limits<float>::infinity());
  for (std::size_t first = 0; first < codewords.count; first += vectors * lanes) {
    Vector sums[rows_at_once][vectors];
    for (auto& row : sums)
      for (Vector& sum : row) sum = hn::Zero(df);
    const float* column = codewords.columns + first;
    const std::size_t dim = fixed_dim != 0 ? fixed_dim : codewords.dim;
    for (std::size_t i = 0; i < dim; ++i, column += codewords.count) {
      Vector values[vectors];
      for (std::size_t v = 0; v < vectors; ++v) values[v] = hn::LoadU(df, column + v * lanes);
      for (std::size_t r = 0; r < rows_at_once; ++r) {
        const auto element = hn::Set(df, rows[r * stride + i]);
        for (std::size_t v = 0; v < vectors; ++v) {
          const auto difference = hn::Sub(element, values[v]);
          sums[r][v] = hn::MulAdd(difference, difference, sums[r][v]);
        }
      }
    }
    for (std::size_t r = 0; r < rows_at_once; ++r)
      for (std::size_t v = 0; v < vectors; ++v) {
        hn::Store(sums[r][v], df, scores[r] + first + v * lanes);
        lowest[r] = hn::Min(lowest[r], sums[r][v]);
      }
  }
  for (std::size_t r = 0; r < rows_at_once; ++r) least[r] = hn::GetLane(hn::MinOfLanes(df, lowest[r]));
}

HWY_INLINE void score(const CodewordsView& codewords, const float* rows, std::size_t stride,
                      float (*scores)[max_codewords], float* least) {
  if (codewords.count % (2 * lanes) != 0)
    score<1, 0>(codewords, rows, stride, scores, least);
  else if (codewords.dim == 4)
    score<2, 4>(codewords, rows, stride, scores, least);
  else if (codewords.dim == 8)
    score<2, 8>(codewords, rows, stride, scores, least);
  else
    score<2, 0>(codewords, rows, stride, scores, least);
}

// The squared distance as core/distance.h defines it.
HWY_INLINE float evaluate(const float* row, const float* codeword, std::size_t dim) {
  double sums[distance_lanes] = {};
  for (std::size_t i = 0; i < dim; ++i) {
    const double difference = static_cast<double>(row[i]) - static_cast<double>(codeword[i]);
    sums[i % distance_lanes] += difference * difference;
  }
  return static_cast<float>(sum_of_lanes(sums));
}

// With u = 2^-24, a sum of dim terms has a relative error of at most (dim + 2) u, plus dim times the smallest
// number if squares underflow. For comparing two sums and the rounding of two reported distances, 4 (dim + 4)
// u and 4 (dim + 2) smallest numbers suffice. 2^-100 replaces the latter: denormal arithmetic took half of
// the search time.
HWY_INLINE float limit_of(float least, std::size_t dim) {
  return least * (1 + 4 * (static_cast<float>(dim) + 4) * 0x1p-24F) + 0x1p-100F;
}

HWY_INLINE std::uint8_t choose(const CodewordsView& codewords, const float* row,
                               const float* HWY_RESTRICT scores, float least) {
  const FloatTag df;
  const auto limit = hn::Set(df, limit_of(least, codewords.dim));
  std::uint64_t left[max_codewords / word_bits] = {};
  std::size_t candidates = 0;
  std::size_t found = 0;
  for (std::size_t w = 0; w * word_bits < codewords.count; ++w) {
    const std::size_t first = w * word_bits;
    const std::size_t end = std::min(word_bits, codewords.count - first);
    for (std::size_t i = 0; i < end; i += lanes) {
      std::uint64_t bits = 0;
      hn::StoreMaskBits(df, hn::Le(hn::Load(df, scores + first + i), limit),
                        reinterpret_cast<std::uint8_t*>(&bits));
      left[w] |= bits << i;
    }
    left[w] &= codewords.distinct[w];
    candidates += hwy::PopCount(left[w]);
    if (left[w] != 0) found = first + hwy::Num0BitsBelowLS1Bit_Nonzero64(left[w]);
  }
  if (HWY_LIKELY(candidates == 1)) return static_cast<std::uint8_t>(found);
  float nearest = 0;
  bool any = false;
  for (std::size_t w = 0; w * word_bits < codewords.count; ++w)
    for (std::uint64_t bits = left[w]; bits != 0; bits &= bits - 1) {
      const std::size_t index = w * word_bits + hwy::Num0BitsBelowLS1Bit_Nonzero64(bits);
      const float distance = evaluate(row, codewords.values + index * codewords.dim, codewords.dim);
      if (any && !(distance < nearest)) continue;
      any = true;
      nearest = distance;
      found = index;
    }
  return static_cast<std::uint8_t>(found);
}

HWY_INLINE void answer(const NearestCodewordsArgs& args, std::size_t index, const float* scores,
                       float least) {
  const CodewordsView& codewords = args.codewords;
  const float* const row = args.rows + index * args.stride;
  args.nearest[index] = choose(codewords, row, scores, least);
  if (args.distances != nullptr)
    args.distances[index] =
        evaluate(row, codewords.values + args.nearest[index] * codewords.dim, codewords.dim);
}

void nearest(const NearestCodewordsArgs& args) noexcept {
  HWY_ALIGN float scores[rows_at_once][max_codewords];
  float least[rows_at_once];
  const CodewordsView& codewords = args.codewords;
  for (std::size_t row = 0; row < args.count; row += rows_at_once) {
    // An incomplete last group overlaps the previous one; fewer rows than a group are processed one by one.
    if (args.count < rows_at_once) {
      for (std::size_t r = 0; r < args.count; ++r) {
        score(codewords, args.rows + r * args.stride, 0, scores, least);
        answer(args, r, scores[0], least[0]);
      }
      return;
    }
    const std::size_t first = std::min(row, args.count - rows_at_once);
    score(codewords, args.rows + first * args.stride, args.stride, scores, least);
    for (std::size_t r = 0; r < rows_at_once; ++r) answer(args, first + r, scores[r], least[r]);
  }
}

// Table of the query's distances to all codewords: the eight lanes of core/distance.h are eight accumulators.
template <bool product>
void table(const CodewordTableArgs& args) noexcept {
  const DoubleTag dd;
  const hn::Rebind<float, DoubleTag> df;
  const CodewordsView& codewords = args.codewords;
  for (std::size_t first = 0; first < codewords.count; first += double_lanes) {
    hn::Vec<DoubleTag> sums[distance_lanes];
    for (auto& sum : sums) sum = hn::Zero(dd);
    const float* column = codewords.columns + first;
    for (std::size_t i = 0; i < codewords.dim; i += distance_lanes)
      for (std::size_t lane = 0; lane < distance_lanes; ++lane) {
        if (i + lane >= codewords.dim) break;
        const auto element = hn::Set(dd, static_cast<double>(args.query[i + lane]));
        const auto values = hn::PromoteTo(dd, hn::LoadU(df, column));
        column += codewords.count;
        if constexpr (product) {
          sums[lane] = hn::Add(sums[lane], hn::Mul(element, values));
        } else {
          const auto difference = hn::Sub(element, values);
          sums[lane] = hn::Add(sums[lane], hn::Mul(difference, difference));
        }
      }
    // As sum_of_lanes.
    const auto even = hn::Add(hn::Add(sums[0], sums[4]), hn::Add(sums[2], sums[6]));
    const auto odd = hn::Add(hn::Add(sums[1], sums[5]), hn::Add(sums[3], sums[7]));
    // Not DemoteTo: Highway's emulation clamps values outside the f32 range.
    HWY_ALIGN double total[double_lanes];
    hn::Store(hn::Add(even, odd), dd, total);
    for (std::size_t lane = 0; lane < double_lanes; ++lane)
      args.table[first + lane] = static_cast<float>(total[lane]);
  }
}

const CodewordKernels* codewords_table() {
  static constexpr CodewordKernels kernels = {nearest, table<false>, table<true>};
  return &kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(codewords_table);

const CodewordKernels& codeword_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(codewords_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
