// Estimates of the distances of one query to unpacked vectors, in f32, limited by memory bandwidth. Callers
// evaluate every vector that the error bound of the estimate does not exclude.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/row_estimate.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>
#include <cstdlib>

#include "backend/cpu/kernels/load-inl.h"
#include "backend/cpu/kernels/prefetch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

using Tag = hn::ScalableTag<float>;
constexpr std::size_t lanes = hn::MaxLanes(Tag());

enum class Form { difference, product, product_and_norm };

struct Sums {
  hn::Vec<Tag> sum;
  hn::Vec<Tag> other;

  // Explicit, since an implicit constructor would be compiled without the target's attributes.
  HWY_INLINE Sums() : sum(hn::Zero(Tag())), other(hn::Zero(Tag())) {}
};

template <typename T, Form form>
HWY_INLINE void add_vector(const float* query, const T* row, Sums& sums) {
  const Tag df;
  const auto q = hn::LoadU(df, query);
  const auto y = load_float(df, row);
  if constexpr (form == Form::difference) {
    const auto difference = hn::Sub(q, y);
    sums.sum = hn::MulAdd(difference, difference, sums.sum);
  } else if constexpr (form == Form::product) {
    sums.sum = hn::MulAdd(q, y, sums.sum);
    sums.other = hn::MulAdd(hn::Abs(q), hn::Abs(y), sums.other);
  } else {
    sums.sum = hn::MulAdd(q, y, sums.sum);
    sums.other = hn::MulAdd(y, y, sums.other);
  }
}

// The index-th row to estimate. The memory after scattered rows is not prefetched.
template <typename T>
HWY_INLINE const T* row_at(const RowEstimateArgs& args, std::size_t index) {
  if (args.addresses != nullptr) return reinterpret_cast<const T*>(args.addresses[index]);
  const T* const row = reinterpret_cast<const T*>(args.base + index * args.stride_bytes);
  prefetch_ahead(row, args.dim * sizeof(T));
  return row;
}

template <typename T, Form form>
void row_estimate(const RowEstimateArgs& args) noexcept {
  const Tag df;
  const std::size_t whole = args.dim / lanes * lanes;
  const std::size_t rest = args.dim - whole;
  float query_tail[lanes];
  load_tail(args.query + whole, rest, query_tail);
  for (std::size_t index = 0; index < args.count; ++index) {
    const T* const row = row_at<T>(args, index);
    // Four independent sums hide the latency of additions.
    Sums a, b, c, d;
    std::size_t i = 0;
    for (; i + 4 * lanes <= whole; i += 4 * lanes) {
      add_vector<T, form>(args.query + i, row + i, a);
      add_vector<T, form>(args.query + i + lanes, row + i + lanes, b);
      add_vector<T, form>(args.query + i + 2 * lanes, row + i + 2 * lanes, c);
      add_vector<T, form>(args.query + i + 3 * lanes, row + i + 3 * lanes, d);
    }
    for (; i < whole; i += lanes) add_vector<T, form>(args.query + i, row + i, a);
    if (rest != 0) {
      T row_tail[lanes];
      add_vector<T, form>(query_tail, load_tail(row + whole, rest, row_tail), b);
    }
    const auto total = hn::Add(hn::Add(a.sum, b.sum), hn::Add(c.sum, d.sum));
    args.sums[index] = hn::GetLane(hn::SumOfLanes(df, total));
    if constexpr (form != Form::difference) {
      const auto other = hn::Add(hn::Add(a.other, b.other), hn::Add(c.other, d.other));
      args.others[index] = hn::GetLane(hn::SumOfLanes(df, other));
    }
  }
}

template <Form form>
HWY_INLINE void write_integer(const RowEstimateArgs& args, std::size_t index, std::int32_t sum) {
  args.sums[index] = static_cast<float>(sum);
  if constexpr (form != Form::difference) args.others[index] = static_cast<float>(std::abs(sum));
}

#if HWY_TARGET == HWY_SCALAR
template <typename T, Form form>
void integer_estimate(const RowEstimateArgs& args) noexcept {
  for (std::size_t index = 0; index < args.count; ++index) {
    const T* const row = row_at<T>(args, index);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < args.dim; ++i) {
      const std::int32_t difference = args.integer_query[i] - row[i];
      sum += form == Form::difference ? difference * difference : args.integer_query[i] * row[i];
    }
    write_integer<form>(args, index, sum);
  }
}
#else
using ShortTag = hn::ScalableTag<std::int16_t>;
using SumTag = hn::RepartitionToWide<ShortTag>;

// The sum over all lanes of both is the sum of all products; the assignment to lanes depends on the target.
struct IntegerSums {
  hn::Vec<SumTag> low;
  hn::Vec<SumTag> high;

  HWY_INLINE IntegerSums() : low(hn::Zero(SumTag())), high(hn::Zero(SumTag())) {}
};

template <typename T, Form form>
HWY_INLINE void add_shorts(hn::Vec<ShortTag> query, const T* row, IntegerSums& sums) {
  const auto y = hn::PromoteTo(ShortTag(), hn::LoadU(hn::Rebind<T, ShortTag>(), row));
  const auto left = form == Form::difference ? hn::Sub(query, y) : query;
  const auto right = form == Form::difference ? left : y;
  sums.low = hn::ReorderWidenMulAccumulate(SumTag(), left, right, sums.low, sums.high);
}

// Rows computed concurrently: they share the loads of the query and hide latency.
constexpr std::size_t group = 4;
using GroupTag = hn::CappedTag<std::int32_t, group>;

// Sums of four rows, one per lane: reduces within 128-bit blocks, then over blocks.
HWY_INLINE hn::Vec<GroupTag> totals(const IntegerSums (&sums)[group]) {
  const SumTag d;
  const auto a = hn::Add(sums[0].low, sums[0].high);
  const auto b = hn::Add(sums[1].low, sums[1].high);
  const auto c = hn::Add(sums[2].low, sums[2].high);
  const auto e = hn::Add(sums[3].low, sums[3].high);
  const auto ac = hn::Add(hn::InterleaveLower(d, a, c), hn::InterleaveUpper(d, a, c));
  const auto be = hn::Add(hn::InterleaveLower(d, b, e), hn::InterleaveUpper(d, b, e));
  const auto all = hn::Add(hn::InterleaveLower(d, ac, be), hn::InterleaveUpper(d, ac, be));
  HWY_ALIGN std::int32_t lanes_of_all[hn::MaxLanes(d)];
  hn::Store(all, d, lanes_of_all);
  auto total = hn::Load(GroupTag(), lanes_of_all);
  for (std::size_t i = group; i < hn::Lanes(d); i += group)
    total = hn::Add(total, hn::Load(GroupTag(), lanes_of_all + i));
  return total;
}

template <typename T, Form form>
HWY_INLINE void integer_group(const RowEstimateArgs& args, std::size_t first) {
  constexpr std::size_t step = hn::MaxLanes(ShortTag());
  const std::size_t last = args.count - 1;
  const T* row[group];
  IntegerSums sums[group];
  for (std::size_t r = 0; r < group; ++r) row[r] = row_at<T>(args, std::min(first + r, last));
  std::size_t i = 0;
  for (; i + step <= args.dim; i += step) {
    const auto query = hn::LoadU(ShortTag(), args.integer_query + i);
    for (std::size_t r = 0; r < group; ++r) add_shorts<T, form>(query, row[r] + i, sums[r]);
  }
  if (i < args.dim) {
    std::int16_t query_tail[step];
    const auto query = hn::LoadU(ShortTag(), load_tail(args.integer_query + i, args.dim - i, query_tail));
    for (std::size_t r = 0; r < group; ++r) {
      T row_tail[step];
      add_shorts<T, form>(query, load_tail(row[r] + i, args.dim - i, row_tail), sums[r]);
    }
  }
  std::int32_t total[group];
  hn::StoreU(totals(sums), GroupTag(), total);
  for (std::size_t r = 0; r < std::min(group, args.count - first); ++r)
    write_integer<form>(args, first + r, total[r]);
}

template <typename T, Form form>
void integer_estimate(const RowEstimateArgs& args) noexcept {
  for (std::size_t first = 0; first < args.count; first += group) integer_group<T, form>(args, first);
}
#endif

template <Form form>
constexpr void fill_integers(RowEstimateKernels::Function (&functions)[element_types]) {
  functions[static_cast<std::size_t>(ElementType::u8)] = integer_estimate<std::uint8_t, form>;
  functions[static_cast<std::size_t>(ElementType::i8)] = integer_estimate<std::int8_t, form>;
}

template <Form form>
constexpr void fill(RowEstimateKernels::Function (&functions)[element_types]) {
  functions[static_cast<std::size_t>(ElementType::f32)] = row_estimate<float, form>;
  functions[static_cast<std::size_t>(ElementType::f16)] = row_estimate<Float16, form>;
  functions[static_cast<std::size_t>(ElementType::bf16)] = row_estimate<BFloat16, form>;
  functions[static_cast<std::size_t>(ElementType::u8)] = row_estimate<std::uint8_t, form>;
  functions[static_cast<std::size_t>(ElementType::i8)] = row_estimate<std::int8_t, form>;
}

const RowEstimateKernels* row_estimate_table() {
  static constexpr RowEstimateKernels table = [] {
    RowEstimateKernels kernels{};
    fill<Form::difference>(kernels.difference);
    fill<Form::product>(kernels.product);
    fill<Form::product_and_norm>(kernels.product_and_norm);
    fill_integers<Form::difference>(kernels.integer_difference);
    fill_integers<Form::product>(kernels.integer_product);
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

HWY_EXPORT(row_estimate_table);

const RowEstimateKernels& row_estimate_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(row_estimate_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
