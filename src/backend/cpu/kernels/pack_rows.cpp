// Packs rows of any element type into f32 panels, shifted to a centre or scaled to length 1 on the way, and measures
// the length of what was packed. Its arithmetic decides nothing that is reported: the bound of score_bound.h covers
// the rounding of the shift and of the length.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/pack_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/load-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

// Two vectors of f64 widen one of f32, so the f32 vector is half of what the target offers.
using DoubleTag = hn::ScalableTag<double>;
using FloatTag = hn::Rebind<float, DoubleTag>;
constexpr std::size_t lanes = hn::MaxLanes(FloatTag());

// Writes the shifted row as f32 and returns its sum of squares, in f64; NaN if an element is not finite.
template <typename T>
HWY_INLINE double shift_row(const T* row, const float* centre, std::size_t dim, float* out) {
  const FloatTag df;
  const DoubleTag dd;
  auto squares = hn::Zero(dd);
  auto poison = hn::Zero(df);  // x * 0 is NaN for a NaN or infinite x, and stays NaN
  const auto step = [&](const T* from, const float* middle, float* to) {
    auto x = load_float(df, from);
    poison = hn::Add(poison, hn::Mul(x, hn::Zero(df)));
    if (middle != nullptr) x = hn::Sub(x, hn::LoadU(df, middle));
    hn::StoreU(x, df, to);
    const auto wide = hn::PromoteTo(dd, x);
    squares = hn::MulAdd(wide, wide, squares);
  };
  std::size_t i = 0;
  for (; i + lanes <= dim; i += lanes) step(row + i, centre != nullptr ? centre + i : nullptr, out + i);
  if (i < dim) {
    T row_tail[lanes];
    float centre_tail[lanes];
    float out_tail[lanes];
    if (centre != nullptr) load_tail(centre + i, dim - i, centre_tail);
    step(load_tail(row + i, dim - i, row_tail), centre != nullptr ? centre_tail : nullptr, out_tail);
    std::memcpy(out + i, out_tail, (dim - i) * sizeof(float));
  }
  const double sum = hn::GetLane(hn::SumOfLanes(dd, squares));
  const float poisoned = hn::GetLane(hn::SumOfLanes(df, poison));
  return std::isnan(poisoned) ? std::nan("") : sum;
}

// Length of the row once written to `out`; NaN if an element is not finite.
template <typename T>
double prepare_row(const PackArgs& args, std::size_t index, float* out) {
  const T* const row = reinterpret_cast<const T*>(args.rows + index * args.stride_bytes);
  const double norm = std::sqrt(shift_row(row, args.centre, args.dim, out));
  if (!args.normalise || !(norm > 0)) return norm;
  for (std::size_t i = 0; i < args.dim; ++i) out[i] = static_cast<float>(static_cast<double>(out[i]) / norm);
  return 1;
}

template <typename T>
std::size_t pack_rows(const PackArgs& args) noexcept {
  for (std::size_t first = 0; first < args.width; first += pack_group) {
    const std::size_t places = std::min(pack_group, args.width - first);
    for (std::size_t r = 0; r < places; ++r) {
      float* const row = args.scratch + r * args.dim;
      if (first + r < args.count) {
        args.norms[first + r] = prepare_row<T>(args, first + r, row);
        if (std::isnan(args.norms[first + r])) return first + r;
      } else {
        std::fill_n(row, args.dim, 0.0F);
      }
    }
    // Whole lines are written once; the group's rows are read from the first-level cache.
    for (std::size_t i = 0; i < args.dim; ++i)
      for (std::size_t r = 0; r < places; ++r)
        args.panel[i * args.width + first + r] = args.scratch[r * args.dim + i];
  }
  return args.count;
}

const PackRowsKernels* pack_rows_table() {
  static constexpr PackRowsKernels table = [] {
    PackRowsKernels kernels{};
    kernels.pack[static_cast<std::size_t>(ElementType::f32)] = pack_rows<float>;
    kernels.pack[static_cast<std::size_t>(ElementType::f16)] = pack_rows<Float16>;
    kernels.pack[static_cast<std::size_t>(ElementType::bf16)] = pack_rows<BFloat16>;
    kernels.pack[static_cast<std::size_t>(ElementType::u8)] = pack_rows<std::uint8_t>;
    kernels.pack[static_cast<std::size_t>(ElementType::i8)] = pack_rows<std::int8_t>;
    return kernels;
  }();
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(pack_rows_table);

const PackRowsKernels& pack_rows_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(pack_rows_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
