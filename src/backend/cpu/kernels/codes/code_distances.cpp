// Four rows at a time share the loads of the query; their sums are transposed in registers.
#include "backend/cpu/kernels/codes/code_distances.h"

#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/codes/code_distances.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>

#include "backend/cpu/kernels/prefetch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
// One lane: plain loops.

// Code `i` of a row.
struct ByteCodes {
  static int code(const std::uint8_t* row, std::size_t i) { return row[i]; }
  static constexpr std::size_t codes_per_byte = 1;
};

struct NibbleCodes {
  static int code(const std::uint8_t* row, std::size_t i) {
    const std::size_t byte = (i / 128 * 32 + i % 32) * 2 + i % 128 / 64;
    return (row[byte] >> (i % 64 / 32 * 4) & 15) * 16;
  }
  static constexpr std::size_t codes_per_byte = 2;
};

template <class Codes>
void distances(const CodeDistanceArgs& args) noexcept {
  for (std::size_t r = 0; r < args.count; ++r) {
    const std::uint8_t* const row = args.codes + std::size_t{args.rows[r]} * args.row_bytes;
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < args.row_bytes * Codes::codes_per_byte; ++i) {
      const int difference = Codes::code(row, i) - args.query[i];
      sum += difference * difference;
    }
    args.distances[r] = sum;
  }
}

void widen(const std::uint8_t* row, std::size_t row_bytes, std::int16_t* query) noexcept {
  std::copy_n(row, row_bytes, query);
}

std::size_t unseen(const UnseenArgs& args) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < args.degree && args.list[i] >= 0; ++i) {
    const auto row = static_cast<std::uint32_t>(args.list[i]);
    if ((args.seen[row >> 5] >> (row & 31U) & 1U) != 0) continue;
    args.seen[row >> 5] |= 1U << (row & 31U);
    args.rows[count++] = row;
  }
  return count;
}

#else

// 32 16-bit words are 64 bytes, a granule of codes.
using Words = hn::CappedTag<std::int16_t, 32>;
using Sums = hn::RepartitionToWide<Words>;
using FourSums = hn::FixedTag<std::int32_t, 4>;
constexpr std::size_t words = hn::MaxLanes(Words());
constexpr std::size_t group = 4;
// Codes beyond are read in order, which the hardware prefetches.
constexpr std::size_t max_prefetched_bytes = 512;

struct RowSum {
  hn::Vec<Sums> low;
  hn::Vec<Sums> high;

  HWY_INLINE void clear() { low = high = hn::Zero(Sums()); }
  HWY_INLINE void add_square(hn::Vec<Words> difference) {
    low = hn::ReorderWidenMulAccumulate(Sums(), difference, difference, low, high);
  }
};

template <class D>
HWY_INLINE hn::Vec<FourSums> to_four(D, hn::Vec<D> sums) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return sums;
  } else {
    const hn::Half<D> half;
    return to_four(half, hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums)));
  }
}

HWY_INLINE hn::Vec<FourSums> total(const RowSum& sum) { return to_four(Sums(), hn::Add(sum.low, sum.high)); }

// Lane r of the result is the sum of all lanes of row r.
HWY_INLINE hn::Vec<FourSums> sum_of_each(const RowSum (&sums)[group]) {
  const FourSums d;
  const hn::RepartitionToWide<FourSums> pairs;
  const auto fold = [&](hn::Vec<FourSums> a, hn::Vec<FourSums> b) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  const auto first = hn::BitCast(pairs, fold(total(sums[0]), total(sums[1])));
  const auto second = hn::BitCast(pairs, fold(total(sums[2]), total(sums[3])));
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, first, second)),
                 hn::BitCast(d, hn::InterleaveUpper(pairs, first, second)));
}

struct ByteCodes {
  HWY_INLINE static void add(const CodeDistanceArgs& args, const std::uint8_t* const (&rows)[group],
                             RowSum (&sums)[group]) {
    const Words d;
    const hn::Rebind<std::uint8_t, Words> bytes;
    for (std::size_t i = 0; i < args.row_bytes; i += words) {
      const auto query = hn::Load(d, args.query + i);
      for (std::size_t r = 0; r < group; ++r)
        sums[r].add_square(hn::Sub(hn::PromoteTo(d, hn::LoadU(bytes, rows[r] + i)), query));
    }
  }
};

struct NibbleCodes {
  // shift: of the code to bits 4 to 7.
  template <int left, int right>
  HWY_INLINE static hn::Vec<Words> part(hn::Vec<hn::RebindToUnsigned<Words> > packed) {
    const hn::RebindToUnsigned<Words> du;
    return hn::BitCast(Words(), hn::And(hn::ShiftRight<right>(hn::ShiftLeft<left>(packed)),
                                        hn::Set(du, std::uint16_t{0xF0})));
  }

  HWY_INLINE static void add(const CodeDistanceArgs& args, const std::uint8_t* const (&rows)[group],
                             RowSum (&sums)[group]) {
    const Words d;
    const hn::RebindToUnsigned<Words> du;
    for (std::size_t block = 0; block < args.row_bytes; block += code_granule)
      for (std::size_t i = 0; i < code_granule / 2; i += words) {
        const std::int16_t* const query = args.query + block * 2 + i;
        const auto query_0 = hn::Load(d, query);
        const auto query_1 = hn::Load(d, query + 32);
        const auto query_2 = hn::Load(d, query + 64);
        const auto query_3 = hn::Load(d, query + 96);
        for (std::size_t r = 0; r < group; ++r) {
          const auto packed = hn::LoadU(du, reinterpret_cast<const std::uint16_t*>(rows[r] + block) + i);
          sums[r].add_square(hn::Sub(part<4, 0>(packed), query_0));
          sums[r].add_square(hn::Sub(part<0, 0>(packed), query_1));
          sums[r].add_square(hn::Sub(part<0, 4>(packed), query_2));
          sums[r].add_square(hn::Sub(part<0, 8>(packed), query_3));
        }
      }
  }
};

template <class Codes>
void distances(const CodeDistanceArgs& args) noexcept {
  for (std::size_t first = 0; first < args.count; first += group) {
    const std::uint8_t* rows[group];
    for (std::size_t r = 0; r < group; ++r)
      rows[r] = args.codes + std::size_t{args.rows[std::min(first + r, args.count - 1)]} * args.row_bytes;
    RowSum sums[group];
    for (std::size_t r = 0; r < group; ++r) sums[r].clear();
    Codes::add(args, rows, sums);
    hn::StoreU(sum_of_each(sums), FourSums(), args.distances + first);
  }
}

void widen(const std::uint8_t* row, std::size_t row_bytes, std::int16_t* query) noexcept {
  const Words d;
  const hn::Rebind<std::uint8_t, Words> bytes;
  for (std::size_t i = 0; i < row_bytes; i += words)
    hn::Store(hn::PromoteTo(d, hn::LoadU(bytes, row + i)), d, query + i);
}

std::size_t unseen(const UnseenArgs& args) noexcept {
  const hn::CappedTag<std::int32_t, 16> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  std::size_t count = 0;
  for (std::size_t i = 0; i < args.degree; i += hn::MaxLanes(d)) {
    const auto list = hn::LoadU(d, args.list + i);
    const auto rows = hn::BitCast(du, hn::Max(list, hn::Zero(d)));
    const auto word = hn::BitCast(du, hn::GatherIndex(d, reinterpret_cast<const std::int32_t*>(args.seen),
                                                      hn::BitCast(d, hn::ShiftRight<5>(rows))));
    const auto bit = hn::Shl(hn::Set(du, 1U), hn::And(rows, hn::Set(du, 31U)));
    const auto is_new = hn::Eq(hn::And(word, bit), hn::Zero(du));
    const auto is_row = hn::RebindMask(du, hn::Gt(list, hn::Set(d, -1)));
    count += hn::CompressStore(rows, hn::And(is_new, is_row), du, args.rows + count);
  }
  const std::size_t prefetched = std::min(args.row_bytes, max_prefetched_bytes);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t row = args.rows[i];
    std::uint32_t& word = args.seen[row >> 5];
    const std::uint32_t bit = 1U << (row & 31U);
    if ((word & bit) != 0) continue;  // twice in the list, as only a forged file has it
    word |= bit;
    args.rows[kept++] = row;
    prefetch(reinterpret_cast<std::uintptr_t>(args.codes + std::size_t{row} * args.row_bytes), prefetched);
  }
  return kept;
}

#endif

const CodeDistanceKernels* code_distance_table() {
  static constexpr CodeDistanceKernels table = {distances<ByteCodes>, distances<NibbleCodes>, widen, unseen};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(code_distance_table);

const CodeDistanceKernels& code_distance_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(code_distance_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
