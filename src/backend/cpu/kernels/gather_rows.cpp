#include "backend/cpu/kernels/gather_rows.h"

#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/gather_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
constexpr std::size_t together = 1;
HWY_INLINE void turn(const std::uint32_t* const rows[together], std::size_t unit, std::size_t,
                     std::uint32_t* out) {
  *out = rows[0][unit];
}
#else
constexpr std::size_t together = 4;

// Four units of four rows at a time: a quarter of the stores, and four rows that come from memory at once.
HWY_INLINE void turn(const std::uint32_t* const rows[together], std::size_t unit, std::size_t width,
                     std::uint32_t* out) {
  const hn::FixedTag<std::uint32_t, 4> du;
  const hn::FixedTag<std::uint64_t, 2> dw;
  const auto a = hn::LoadU(du, rows[0] + unit);
  const auto b = hn::LoadU(du, rows[1] + unit);
  const auto c = hn::LoadU(du, rows[2] + unit);
  const auto d = hn::LoadU(du, rows[3] + unit);
  const auto ab_low = hn::BitCast(dw, hn::InterleaveLower(du, a, b));
  const auto ab_high = hn::BitCast(dw, hn::InterleaveUpper(du, a, b));
  const auto cd_low = hn::BitCast(dw, hn::InterleaveLower(du, c, d));
  const auto cd_high = hn::BitCast(dw, hn::InterleaveUpper(du, c, d));
  hn::StoreU(hn::BitCast(du, hn::InterleaveLower(dw, ab_low, cd_low)), du, out);
  hn::StoreU(hn::BitCast(du, hn::InterleaveUpper(dw, ab_low, cd_low)), du, out + width);
  hn::StoreU(hn::BitCast(du, hn::InterleaveLower(dw, ab_high, cd_high)), du, out + 2 * width);
  hn::StoreU(hn::BitCast(du, hn::InterleaveUpper(dw, ab_high, cd_high)), du, out + 3 * width);
}
#endif

void gather(const GatherRowsArgs& args) noexcept {
  std::size_t first = 0;
  for (; first + together <= args.count; first += together) {
    const std::uint32_t* rows[together];
    for (std::size_t i = 0; i < together; ++i) rows[i] = args.rows + args.numbers[first + i] * args.units;
    std::size_t unit = 0;
    for (; unit + together <= args.units; unit += together)
      turn(rows, unit, args.width, args.out + unit * args.width + first);
    for (; unit < args.units; ++unit)
      for (std::size_t i = 0; i < together; ++i) args.out[unit * args.width + first + i] = rows[i][unit];
  }
  for (; first < args.width; ++first)
    for (std::size_t unit = 0; unit < args.units; ++unit)
      args.out[unit * args.width + first] =
          first < args.count ? args.rows[args.numbers[first] * args.units + unit] : 0;
}

const GatherRowsKernels* gather_rows_table() {
  static constexpr GatherRowsKernels table = {gather};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(gather_rows_table);

const GatherRowsKernels& gather_rows_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(gather_rows_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
