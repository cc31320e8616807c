// Distances of one query to vectors, in the f64 arithmetic that defines reported distances (core/distance.h):
// element i is added to lane i mod 8, products are rounded before they are added, and lanes are combined by a
// fixed tree. Eight lanes are one AVX-512 register, two of AVX2, or four of SSE4: every target computes the
// same sums.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"
#include "core/distance.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/row_distance.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include "backend/cpu/kernels/load-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

using Tag = hn::CappedTag<double, distance_lanes>;
constexpr std::size_t vectors = distance_lanes / hn::MaxLanes(Tag());

struct Lanes {
  hn::Vec<Tag> part[vectors];

  HWY_INLINE double sum() const {
    HWY_ALIGN double lane[distance_lanes];
    for (std::size_t v = 0; v < vectors; ++v) hn::Store(part[v], Tag(), lane + v * hn::MaxLanes(Tag()));
    return sum_of_lanes(lane);
  }
};

enum class Form { difference, product, product_and_norm };

template <typename T, Form form>
HWY_INLINE void add_eight(const double* query, const T* row, Lanes& sums, Lanes& norms) {
  const Tag dd;
  for (std::size_t v = 0; v < vectors; ++v) {
    const auto q = hn::LoadU(dd, query + v * hn::MaxLanes(dd));
    const auto y = load_double(dd, row + v * hn::MaxLanes(dd));
    if constexpr (form == Form::difference) {
      const auto difference = hn::Sub(q, y);
      sums.part[v] = hn::Add(sums.part[v], hn::Mul(difference, difference));
    } else {
      sums.part[v] = hn::Add(sums.part[v], hn::Mul(q, y));
      if constexpr (form == Form::product_and_norm) norms.part[v] = hn::Add(norms.part[v], hn::Mul(y, y));
    }
  }
}

// Rows computed concurrently to hide the latency of additions, as many as fit the registers.
constexpr std::size_t group = vectors == 1 ? 4 : vectors == 2 ? 2 : 1;

// Rows [first, first + size).
template <typename T, Form form, std::size_t size>
HWY_INLINE void distances_of(const RowDistanceArgs& args, std::size_t first) {
  const Tag dd;
  const std::size_t whole = args.dim / distance_lanes * distance_lanes;
  const std::size_t rest = args.dim - whole;
  const T* row[size];
  Lanes sums[size];
  Lanes norms[size];
  for (std::size_t r = 0; r < size; ++r) {
    const std::size_t number = args.rows != nullptr ? args.rows[first + r] : first + r;
    row[r] = reinterpret_cast<const T*>(args.addresses != nullptr ? args.addresses[first + r]
                                                                  : args.base + number * args.stride_bytes);
    for (std::size_t v = 0; v < vectors; ++v) sums[r].part[v] = norms[r].part[v] = hn::Zero(dd);
  }
  for (std::size_t i = 0; i < whole; i += distance_lanes)
    for (std::size_t r = 0; r < size; ++r) add_eight<T, form>(args.query + i, row[r] + i, sums[r], norms[r]);
  if (rest != 0) {
    // Zeros in the unused lanes add +0.0, which changes no sum.
    double query_tail[distance_lanes];
    load_tail(args.query + whole, rest, query_tail);
    for (std::size_t r = 0; r < size; ++r) {
      T row_tail[distance_lanes];
      add_eight<T, form>(query_tail, load_tail(row[r] + whole, rest, row_tail), sums[r], norms[r]);
    }
  }
  for (std::size_t r = 0; r < size; ++r) {
    args.sums[first + r] = sums[r].sum();
    if constexpr (form == Form::product_and_norm) args.norms[first + r] = norms[r].sum();
  }
}

template <typename T, Form form>
void row_distance(const RowDistanceArgs& args) noexcept {
  std::size_t first = 0;
  for (; first + group <= args.count; first += group) distances_of<T, form, group>(args, first);
  for (; first < args.count; ++first) distances_of<T, form, 1>(args, first);
}

template <Form form>
constexpr void fill(RowDistanceKernels::Function (&functions)[element_types]) {
  functions[static_cast<std::size_t>(ElementType::f32)] = row_distance<float, form>;
  functions[static_cast<std::size_t>(ElementType::f16)] = row_distance<Float16, form>;
  functions[static_cast<std::size_t>(ElementType::bf16)] = row_distance<BFloat16, form>;
  functions[static_cast<std::size_t>(ElementType::u8)] = row_distance<std::uint8_t, form>;
  functions[static_cast<std::size_t>(ElementType::i8)] = row_distance<std::int8_t, form>;
}

const RowDistanceKernels* row_distance_table() {
  static constexpr RowDistanceKernels table = [] {
    RowDistanceKernels kernels{};
    fill<Form::difference>(kernels.difference);
    fill<Form::product>(kernels.product);
    fill<Form::product_and_norm>(kernels.product_and_norm);
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

HWY_EXPORT(row_distance_table);

const RowDistanceKernels& row_distance_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(row_distance_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
