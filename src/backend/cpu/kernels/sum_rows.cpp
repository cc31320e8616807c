// Sums of scattered rows: the sums, a few KB, stay in the L1 cache while rows are prefetched. Every element
// has its own sum, so the order of additions does not depend on the register width.
#include "backend/cpu/kernels/sum_rows.h"

#include "backend/cpu/kernels/targets.h"
#include "core/distance.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/sum_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/load-inl.h"
#include "backend/cpu/kernels/prefetch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

using Tag = hn::CappedTag<double, distance_lanes>;
constexpr std::size_t vectors = distance_lanes / hn::MaxLanes(Tag());
// Prefetch distance in rows: memory latency is about the time of a few rows.
constexpr std::size_t rows_ahead = 6;

struct Lanes {
  hn::Vec<Tag> part[vectors];

  HWY_INLINE void clear() {
    for (std::size_t v = 0; v < vectors; ++v) part[v] = hn::Zero(Tag());
  }
  HWY_INLINE double sum() const {
    HWY_ALIGN double lane[distance_lanes];
    for (std::size_t v = 0; v < vectors; ++v) hn::Store(part[v], Tag(), lane + v * hn::MaxLanes(Tag()));
    return sum_of_lanes(lane);
  }
};

// Calls step(i, elements) for eight elements of a row at a time, padded with zeros.
template <typename T, typename Step>
HWY_INLINE void for_each_eight(const T* row, std::size_t dim, const Step& step) {
  const std::size_t whole = dim / distance_lanes * distance_lanes;
  for (std::size_t i = 0; i < whole; i += distance_lanes) step(i, row + i);
  if (whole == dim) return;
  T tail[distance_lanes];
  step(whole, load_tail(row + whole, dim - whole, tail));
}

template <typename T>
HWY_INLINE double length_of(const T* row, std::size_t dim) {
  const Tag dd;
  Lanes squares;
  squares.clear();
  for_each_eight(row, dim, [&](std::size_t, const T* elements) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto x = load_double(dd, elements + v * hn::MaxLanes(dd));
      squares.part[v] = hn::Add(squares.part[v], hn::Mul(x, x));
    }
  });
  return std::sqrt(squares.sum());
}

// Rows of four or eight elements, as in parts of a product quantizer: sums and centre stay in registers. With
// four elements the other lanes would be zeros, which change no sum.
template <typename T, std::size_t dim>
double sum_short_rows(const SumRowsArgs& args) noexcept {
  using ShortTag = hn::CappedTag<double, dim>;
  const ShortTag dd;
  constexpr std::size_t width = hn::MaxLanes(ShortTag());
  constexpr std::size_t parts = dim / width;
  hn::Vec<ShortTag> sums[parts];
  hn::Vec<ShortTag> centre[parts];
  for (std::size_t v = 0; v < parts; ++v) {
    sums[v] = hn::LoadU(dd, args.sums + v * width);
    centre[v] = hn::LoadU(dd, args.centre + v * width);
  }
  double error = 0;
  for (std::size_t index = 0; index < args.count; ++index) {
    const T* const row = reinterpret_cast<const T*>(args.base + args.rows[index] * args.stride_bytes);
    HWY_ALIGN double squares[distance_lanes] = {};
    for (std::size_t v = 0; v < parts; ++v) {
      const auto x = load_double(dd, row + v * width);
      const auto difference = hn::Sub(x, centre[v]);
      hn::Store(hn::Mul(difference, difference), dd, squares + v * width);
      sums[v] = hn::Add(sums[v], x);
    }
    error += sum_of_lanes(squares);
  }
  for (std::size_t v = 0; v < parts; ++v) hn::StoreU(sums[v], dd, args.sums + v * width);
  return error;
}

template <typename T, bool unit_length>
double sum_rows(const SumRowsArgs& args) noexcept {
  if constexpr (!unit_length) {
    if (args.dim == 4) return sum_short_rows<T, 4>(args);
    if (args.dim == 8) return sum_short_rows<T, 8>(args);
  }
  const Tag dd;
  const std::size_t row_bytes = args.dim * sizeof(T);
  const auto row_at = [&](std::size_t index) {
    return reinterpret_cast<const T*>(args.base + args.rows[index] * args.stride_bytes);
  };
  double error = 0;
  for (std::size_t index = 0; index < args.count; ++index) {
    if (index + rows_ahead < args.count)
      prefetch(reinterpret_cast<std::uintptr_t>(row_at(index + rows_ahead)), row_bytes);
    const T* const row = row_at(index);
    double length = 1;
    if constexpr (unit_length) length = length_of(row, args.dim);
    const auto lengths = hn::Set(dd, length > 0 ? length : 1);
    Lanes squares;
    squares.clear();
    for_each_eight(row, args.dim, [&](std::size_t i, const T* elements) {
      for (std::size_t v = 0; v < vectors; ++v) {
        const std::size_t lane = v * hn::MaxLanes(dd);
        auto x = load_double(dd, elements + lane);
        if constexpr (unit_length) x = hn::Div(x, lengths);
        const auto difference = hn::Sub(x, hn::LoadU(dd, args.centre + i + lane));
        squares.part[v] = hn::Add(squares.part[v], hn::Mul(difference, difference));
        hn::StoreU(hn::Add(hn::LoadU(dd, args.sums + i + lane), x), dd, args.sums + i + lane);
      }
    });
    error += squares.sum();
  }
  return error;
}

template <bool unit_length>
constexpr void fill(SumRowsKernels::Function (&functions)[element_types]) {
  functions[static_cast<std::size_t>(ElementType::f32)] = sum_rows<float, unit_length>;
  functions[static_cast<std::size_t>(ElementType::f16)] = sum_rows<Float16, unit_length>;
  functions[static_cast<std::size_t>(ElementType::bf16)] = sum_rows<BFloat16, unit_length>;
  functions[static_cast<std::size_t>(ElementType::u8)] = sum_rows<std::uint8_t, unit_length>;
  functions[static_cast<std::size_t>(ElementType::i8)] = sum_rows<std::int8_t, unit_length>;
}

const SumRowsKernels* sum_rows_table() {
  static constexpr SumRowsKernels table = [] {
    SumRowsKernels kernels{};
    fill<false>(kernels.as_given);
    fill<true>(kernels.to_unit_length);
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

HWY_EXPORT(sum_rows_table);

const SumRowsKernels& sum_rows_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(sum_rows_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
