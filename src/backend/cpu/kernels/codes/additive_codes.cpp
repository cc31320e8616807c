#include "backend/cpu/kernels/codes/additive_codes.h"

#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/codes/additive_codes.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Shorts = hn::CappedTag<std::int16_t, 32>;

constexpr std::size_t float_lanes = hn::MaxLanes(Floats());
constexpr std::size_t short_lanes = hn::MaxLanes(Shorts());

// Eight accumulators hide the latency of additions on two ports and fit 16 registers.
constexpr std::size_t rows_at_once = 4;
constexpr std::size_t vectors = 2;
constexpr std::size_t step = vectors * float_lanes;
static_assert(additive_codebook_size % step == 0);

// Rounds to nearest, ties to even, by adding 1.5 * 2^23: the conversion instructions of targets differ.
HWY_INLINE hn::Vec<hn::Rebind<std::int16_t, Floats>> rounded(hn::Vec<Floats> value) {
  const Floats df;
  const hn::Rebind<std::int32_t, Floats> di;
  const hn::Rebind<std::int16_t, Floats> ds;
  const auto magic = hn::Set(df, 12582912.0F);  // 1.5 * 2^23
  const auto limit = hn::Set(df, 32767.0F);
  const auto within = hn::Max(hn::Min(value, limit), hn::Neg(limit));
  const auto bits = hn::BitCast(di, hn::Add(within, magic));
  return hn::DemoteTo(ds, hn::Sub(bits, hn::BitCast(di, magic)));
}

void scaled_products(const ScaledProductsArgs& args) noexcept {
  const Floats df;
  const hn::Rebind<std::int16_t, Floats> ds;
  const auto factor = hn::Set(df, args.factor);
  const auto scale = hn::Set(df, args.scale);
  for (std::size_t first = 0; first < args.count; first += rows_at_once) {
    // The last group repeats the last row, which writes the same values again.
    std::size_t index[rows_at_once];
    for (std::size_t r = 0; r < rows_at_once; ++r) index[r] = std::min(first + r, args.count - 1);
    for (std::size_t codeword = 0; codeword < additive_codebook_size; codeword += step) {
      hn::Vec<Floats> sums[rows_at_once][vectors];
      for (auto& row : sums)
        for (std::size_t v = 0; v < vectors; ++v) row[v] = hn::Zero(df);
      const float* HWY_RESTRICT columns = args.columns + codeword;
      for (std::size_t i = 0; i < args.dim; ++i, columns += additive_codebook_size) {
        hn::Vec<Floats> elements[vectors];
        for (std::size_t v = 0; v < vectors; ++v) elements[v] = hn::LoadU(df, columns + v * float_lanes);
        for (std::size_t r = 0; r < rows_at_once; ++r) {
          const auto x = hn::Set(df, args.rows[index[r] * args.stride + i]);
          for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::Add(sums[r][v], hn::Mul(x, elements[v]));
        }
      }
      for (std::size_t r = 0; r < rows_at_once; ++r)
        for (std::size_t v = 0; v < vectors; ++v) {
          const std::size_t at = codeword + v * float_lanes;
          const auto value =
              hn::Mul(hn::Add(hn::LoadU(df, args.start + at), hn::Mul(factor, sums[r][v])), scale);
          hn::StoreU(rounded(value), ds, args.out + index[r] * additive_codebook_size + at);
        }
    }
  }
}

// Codewords whose sums are computed at a time: eight registers.
constexpr std::size_t sums_at_once = 8;
constexpr std::size_t candidates = sums_at_once * short_lanes;
static_assert(additive_codebook_size % candidates == 0);

// Minimum over all lanes of value * 2^16 + number, which orders by value, then number. Numbers are not
// negative.
template <class D>
HWY_INLINE std::int32_t min_of_lanes(D /* tag */, hn::Vec<D> value, hn::Vec<D> number) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(value) * 65536 + hn::GetLane(number);
  } else {
    const hn::Repartition<std::int32_t, D> dw;
    const hn::Repartition<std::uint32_t, D> du;
    const auto even = hn::Or(hn::ShiftLeft<16>(hn::BitCast(dw, value)),
                             hn::And(hn::BitCast(dw, number), hn::Set(dw, 0xFFFF)));
    const auto odd = hn::Or(hn::AndNot(hn::Set(dw, 0xFFFF), hn::BitCast(dw, value)),
                            hn::BitCast(dw, hn::ShiftRight<16>(hn::BitCast(du, number))));
    return hn::GetLane(hn::MinOfLanes(dw, hn::Min(even, odd)));
  }
}

// Best codeword of [first, first + candidates).
HWY_INLINE std::int32_t best_candidate(const ConditionalModesArgs& args, const std::int16_t* own,
                                       const std::uint8_t* codes, std::size_t first) {
  const Shorts d;
  hn::Vec<Shorts> sums[sums_at_once];
  for (std::size_t v = 0; v < sums_at_once; ++v) sums[v] = hn::LoadU(d, own + first + v * short_lanes);
  for (std::size_t other = 0; other < args.other_count; ++other) {
    const std::int16_t* HWY_RESTRICT row =
        args.tables[other] + codes[args.others[other]] * additive_codebook_size + first;
    for (std::size_t v = 0; v < sums_at_once; ++v)
      sums[v] = hn::SaturatedAdd(sums[v], hn::LoadU(d, row + v * short_lanes));
  }
  auto least = sums[0];
  auto number = hn::Iota(d, static_cast<std::int16_t>(first));
  for (std::size_t v = 1; v < sums_at_once; ++v) {
    const auto lower = hn::Lt(sums[v], least);
    number = hn::IfThenElse(lower, hn::Iota(d, static_cast<std::int16_t>(first + v * short_lanes)), number);
    least = hn::Min(sums[v], least);
  }
  return min_of_lanes(d, least, number);
}

std::size_t conditional_modes(const ConditionalModesArgs& args) noexcept {
  const std::uint32_t bit = std::uint32_t{1} << args.code;
  std::size_t chosen = 0;
  for (std::size_t row = 0; row < args.count; ++row) {
    if ((args.settled[row] & bit) != 0) continue;
    ++chosen;
    std::uint8_t* const codes = args.codes + row * args.stride;
    const std::int16_t* const own = args.own + row * additive_codebook_size;
    std::int32_t best = std::numeric_limits<std::int32_t>::max();
    for (std::size_t first = 0; first < additive_codebook_size; first += candidates)
      best = std::min(best, best_candidate(args, own, codes, first));
    const auto codeword = static_cast<std::uint8_t>(best & 0xFF);
    args.settled[row] = codes[args.code] == codeword ? args.settled[row] | bit : bit;
    codes[args.code] = codeword;
  }
  return chosen;
}

constexpr std::size_t cost_vectors = cost_lanes / float_lanes;

void costs(const AdditiveCostsArgs& args) noexcept {
  const Floats df;
  for (std::size_t row = 0; row < args.count; ++row) {
    const float* const values = args.rows + row * args.width;
    const std::uint8_t* const codes = args.codes + row * args.codebooks;
    hn::Vec<Floats> sums[cost_vectors];
    for (std::size_t v = 0; v < cost_vectors; ++v) sums[v] = hn::Zero(df);
    for (std::size_t i = 0; i < args.width; i += cost_lanes)
      for (std::size_t v = 0; v < cost_vectors; ++v) {
        const std::size_t at = i + v * float_lanes;
        auto difference = hn::LoadU(df, values + at);
        for (std::size_t book = 0; book < args.codebooks; ++book)
          difference = hn::Sub(
              difference, hn::LoadU(df, args.codewords +
                                            (book * additive_codebook_size + codes[book]) * args.width + at));
        sums[v] = hn::Add(sums[v], hn::Mul(difference, difference));
      }
    HWY_ALIGN float lanes[cost_lanes];
    for (std::size_t v = 0; v < cost_vectors; ++v) hn::Store(sums[v], df, lanes + v * float_lanes);
    for (std::size_t half = cost_lanes / 2; half != 0; half /= 2)
      for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    args.costs[row] = lanes[0];
  }
}

const AdditiveKernels* additive_table() {
  static constexpr AdditiveKernels kernels = {scaled_products, conditional_modes, costs};
  return &kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(additive_table);

const AdditiveKernels& additive_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(additive_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
