// Distances of one query to rows as they lie in memory, estimated in f32 at the speed at which they can be read. An
// estimate decides nothing by itself: knn_direct evaluates every row that its error bound does not exclude.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/row_estimate.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <cstdlib>

#include "backend/cpu/kernels/load-inl.h"
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

  // Written out: an implicit constructor would be compiled without the attributes of the target.
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

template <typename T, Form form>
void row_estimate(const RowEstimateArgs& args) noexcept {
  const Tag df;
  const std::size_t whole = args.dim / lanes * lanes;
  const std::size_t rest = args.dim - whole;
  float query_tail[lanes];
  load_tail(args.query + whole, rest, query_tail);
  for (std::size_t index = 0; index < args.count; ++index) {
    const T* const row = reinterpret_cast<const T*>(args.base + index * args.stride_bytes);
    // Four chains of additions hide the latency of each.
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
HWY_INLINE void put_integer(const RowEstimateArgs& args, std::size_t index, std::int32_t sum) {
  args.sums[index] = static_cast<float>(sum);
  if constexpr (form != Form::difference) args.others[index] = static_cast<float>(std::abs(sum));
}

#if HWY_TARGET == HWY_SCALAR
template <typename T, Form form>
void integer_estimate(const RowEstimateArgs& args) noexcept {
  for (std::size_t index = 0; index < args.count; ++index) {
    const T* const row = reinterpret_cast<const T*>(args.base + index * args.stride_bytes);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < args.dim; ++i) {
      const std::int32_t difference = args.integer_query[i] - row[i];
      sum += form == Form::difference ? difference * difference : args.integer_query[i] * row[i];
    }
    put_integer<form>(args, index, sum);
  }
}
#else
using ShortTag = hn::ScalableTag<std::int16_t>;
using SumTag = hn::RepartitionToWide<ShortTag>;

// Both halves together hold the sums of all products; which lane takes which differs between targets.
struct IntegerSums {
  hn::Vec<SumTag> low;
  hn::Vec<SumTag> high;

  HWY_INLINE IntegerSums() : low(hn::Zero(SumTag())), high(hn::Zero(SumTag())) {}
  HWY_INLINE std::int32_t total() const { return hn::GetLane(hn::SumOfLanes(SumTag(), hn::Add(low, high))); }
};

template <typename T, Form form>
HWY_INLINE void add_shorts(hn::Vec<ShortTag> query, const T* row, IntegerSums& sums) {
  const auto y = hn::PromoteTo(ShortTag(), hn::LoadU(hn::Rebind<T, ShortTag>(), row));
  const auto left = form == Form::difference ? hn::Sub(query, y) : query;
  const auto right = form == Form::difference ? left : y;
  sums.low = hn::ReorderWidenMulAccumulate(SumTag(), left, right, sums.low, sums.high);
}

// `rows` at once share the loads of the query and hide each other's latency.
template <typename T, Form form, std::size_t rows>
HWY_INLINE void integer_rows(const RowEstimateArgs& args, std::size_t first) {
  constexpr std::size_t step = hn::MaxLanes(ShortTag());
  const T* row[rows];
  IntegerSums sums[rows];
  for (std::size_t r = 0; r < rows; ++r)
    row[r] = reinterpret_cast<const T*>(args.base + (first + r) * args.stride_bytes);
  std::size_t i = 0;
  for (; i + step <= args.dim; i += step) {
    const auto query = hn::LoadU(ShortTag(), args.integer_query + i);
    for (std::size_t r = 0; r < rows; ++r) add_shorts<T, form>(query, row[r] + i, sums[r]);
  }
  if (i < args.dim) {
    std::int16_t query_tail[step];
    const auto query = hn::LoadU(ShortTag(), load_tail(args.integer_query + i, args.dim - i, query_tail));
    for (std::size_t r = 0; r < rows; ++r) {
      T row_tail[step];
      add_shorts<T, form>(query, load_tail(row[r] + i, args.dim - i, row_tail), sums[r]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) put_integer<form>(args, first + r, sums[r].total());
}

template <typename T, Form form>
void integer_estimate(const RowEstimateArgs& args) noexcept {
  std::size_t index = 0;
  for (; index + 4 <= args.count; index += 4) integer_rows<T, form, 4>(args, index);
  for (; index < args.count; ++index) integer_rows<T, form, 1>(args, index);
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
