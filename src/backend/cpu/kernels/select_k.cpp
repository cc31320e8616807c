// Kernels of selection. The time is spent in `scan`, which reads every value once and compares it with a
// threshold.
//
// The comparisons of 64 values form a 64-bit mask, and all masks of a segment are stored before any is used:
// the reading loop has no data-dependent branch. Passing values are then extracted while they are in the L1
// cache.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/select_k.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/selection_key.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using ImageTag = hn::RebindToSigned<FloatTag>;
using KeyTag = hn::ScalableTag<std::int64_t>;
using Vector = hn::Vec<FloatTag>;

constexpr std::size_t lanes = hn::MaxLanes(FloatTag());
constexpr std::size_t key_lanes = hn::MaxLanes(KeyTag());
constexpr std::size_t word_bits = 64;
constexpr std::size_t line_floats = 16;
// Prefetch distance in values, two pages: the hardware prefetcher stops at page ends. 8 rows of 128,000
// values in the L3 cache at k = 10: 1.14 instead of 1.25 times the time of reading (select_k_bench, November
// 2026).
constexpr std::size_t prefetched_values = 2048;
constexpr std::size_t segment_words = select_segment / word_bits;
static_assert(word_bits % lanes == 0 && sample_granule % (4 * lanes) == 0);

template <class D>
HWY_INLINE std::uint64_t bits_of(D tag, hn::Mask<D> mask) {
  std::uint64_t bits = 0;
  hn::StoreMaskBits(tag, mask, reinterpret_cast<std::uint8_t*>(&bits));
  return bits;
}

// Bit i: whether value i passes.
template <SelectTest test>
HWY_INLINE std::uint64_t test_word(const float* HWY_RESTRICT values, Vector threshold) {
  const FloatTag df;
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < word_bits; i += lanes) {
    const auto x = hn::LoadU(df, values + i);
    if constexpr (test == SelectTest::at_most)
      word |= bits_of(df, hn::Le(x, threshold)) << i;
    else if constexpr (test == SelectTest::at_least)
      word |= bits_of(df, hn::Ge(x, threshold)) << i;
    else
      word |= bits_of(df, hn::IsNaN(x)) << i;
  }
  return word;
}

template <SelectTest test>
HWY_INLINE std::int64_t key_at(const float* row, std::size_t position) {
  std::int32_t image = nan_image;
  if constexpr (test != SelectTest::not_a_number)
    image = image_of_number(row[position], test == SelectTest::at_most ? Order::smallest : Order::largest);
  return make_key(image, static_cast<std::uint32_t>(position));
}

// For rare passing values: skips masks without any.
template <SelectTest test>
HWY_INLINE void extract_rare(const float* row, std::size_t first, const std::uint64_t* words,
                             std::size_t count, std::int64_t* keys) {
  for (std::size_t w = 0; w < count; ++w)
    for (std::uint64_t word = words[w]; word != 0; word &= word - 1)
      *keys++ = key_at<test>(row, first + w * word_bits + hwy::Num0BitsBelowLS1Bit_Nonzero64(word));
}

// For masks that often have one or two bits set, where a branch on their number would be mispredicted: always
// writes two keys; invalid ones are overwritten.
template <SelectTest test>
HWY_INLINE void extract_frequent(const float* row, std::size_t first, const std::uint64_t* words,
                                 std::size_t count, std::int64_t* keys) {
  constexpr std::uint64_t last_bit = std::uint64_t{1} << (word_bits - 1);
  for (std::size_t w = 0; w < count; ++w) {
    const std::size_t position = first + w * word_bits;
    const std::uint64_t one = words[w];
    const std::uint64_t two = one & (one - 1);
    const std::size_t survivors = hwy::PopCount(one);
    keys[0] = key_at<test>(row, position + hwy::Num0BitsBelowLS1Bit_Nonzero64(one | last_bit));
    keys[1] = key_at<test>(row, position + hwy::Num0BitsBelowLS1Bit_Nonzero64(two | last_bit));
    if (HWY_UNLIKELY(survivors > 2)) extract_rare<test>(row, position, &one, 1, keys);
    keys += survivors;
  }
}

template <SelectTest test>
SelectScanEnd scan(const SelectScanArgs& args) noexcept {
  const FloatTag df;
  const auto threshold = hn::Set(df, args.threshold);
  std::uint64_t words[segment_words];
  std::size_t count = args.count;
  for (std::size_t first = args.begin; first < args.end; first += select_segment) {
    const std::size_t length = std::min(select_segment, args.end - first);
    const std::size_t whole_words = length / word_bits;
    std::size_t survivors = 0;
    for (std::size_t w = 0; w < whole_words; ++w) {
      const float* const values = args.row + first + w * word_bits;
      // May prefetch past the end of the row, which never faults.
      for (std::size_t i = 0; i < word_bits; i += line_floats) hwy::Prefetch(values + prefetched_values + i);
      words[w] = test_word<test>(values, threshold);
      survivors += hwy::PopCount(words[w]);
    }
    std::uint64_t last_word = 0;
    const std::size_t rest = length % word_bits;
    if (rest != 0) {
      float padded[word_bits] = {};
      std::memcpy(padded, args.row + first + whole_words * word_bits, rest * sizeof(float));
      last_word = test_word<test>(padded, threshold) & ((std::uint64_t{1} << rest) - 1);
      survivors += hwy::PopCount(last_word);
    }
    if (survivors == 0) continue;
    if (HWY_UNLIKELY(count + survivors > args.capacity)) return {first, count};
    std::int64_t* const keys = args.keys + count;
    if (survivors * 4 < segment_words)
      extract_rare<test>(args.row, first, words, whole_words, keys);
    else
      extract_frequent<test>(args.row, first, words, whole_words, keys);
    count += survivors;
    // The row ends within the last mask: its keys are extracted one by one after the others.
    extract_rare<test>(args.row, first + whole_words * word_bits, &last_word, 1,
                       args.keys + count - hwy::PopCount(last_word));
  }
  return {args.end, count};
}

// image_of_number for a register, and nan_image for NaN. sign: -0.0 to reverse the order, else 0.
template <class D>
HWY_INLINE hn::VFromD<hn::RebindToSigned<D>> images_of(D df, hn::VFromD<D> values, hn::VFromD<D> sign) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, hn::Add(hn::Xor(values, sign), hn::Zero(df)));
  const auto flip = hn::And(hn::ShiftRight<31>(bits), hn::Set(di, 0x7FFFFFFF));
  return hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(values)), hn::Set(di, nan_image), hn::Xor(bits, flip));
}

HWY_INLINE float sign_of(Order order) { return order == Order::smallest ? 0.0F : -0.0F; }

void encode(const float* row, std::size_t begin, std::size_t end, Order order, std::int64_t* keys) noexcept {
  const KeyTag dk;
  const hn::Rebind<float, KeyTag> df;
  const auto sign = hn::Set(df, sign_of(order));
  const auto step = [&](const float* from, std::size_t first) {
    const auto images = hn::PromoteTo(dk, images_of(df, hn::LoadU(df, from), sign));
    return hn::Or(hn::ShiftLeft<32>(images), hn::Iota(dk, static_cast<std::int64_t>(first)));
  };
  std::size_t i = begin;
  for (; i + key_lanes <= end; i += key_lanes) hn::StoreU(step(row + i, i), dk, keys + i);
  if (i == end) return;
  float padded[key_lanes] = {};
  std::memcpy(padded, row + i, (end - i) * sizeof(float));
  std::int64_t last[key_lanes];
  hn::StoreU(step(padded, i), dk, last);
  std::memcpy(keys + i, last, (end - i) * sizeof(std::int64_t));
}

ImageRange sample(const SampleArgs& args) noexcept {
  const FloatTag df;
  const ImageTag di;
  const auto sign = hn::Set(df, sign_of(args.order));
  std::int32_t* out = args.images;
  for (std::size_t chunk = 0; chunk < args.chunks; ++chunk) {
    const float* const from = args.row + chunk * args.stride;
    std::size_t i = 0;
    for (; i + lanes <= args.length; i += lanes, out += lanes)
      hn::StoreU(images_of(df, hn::LoadU(df, from + i), sign), di, out);
    if (i == args.length) continue;
    float padded[lanes] = {};
    std::memcpy(padded, from + i, (args.length - i) * sizeof(float));
    hn::StoreU(images_of(df, hn::LoadU(df, padded), sign), di, out);
    out += args.length - i;
  }
  for (; (out - args.images) % sample_granule != 0; ++out) *out = nan_image;
  if (args.groups != 0 && args.images + args.groups < out) {
    for (std::size_t i = 0; i < args.groups; i += lanes) {
      auto least = hn::LoadU(di, args.images + i);
      for (const std::int32_t* image = args.images + i + args.groups; image < out; image += args.groups)
        least = hn::Min(least, hn::LoadU(di, image));
      hn::StoreU(least, di, args.images + i);
    }
    out = args.images + args.groups;
  }
  auto lowest = hn::Set(di, nan_image);
  auto highest = hn::Set(di, std::numeric_limits<std::int32_t>::min());
  for (const std::int32_t* image = args.images; image < out; image += lanes) {
    lowest = hn::Min(lowest, hn::LoadU(di, image));
    highest = hn::Max(highest, hn::LoadU(di, image));
  }
  return {hn::GetLane(hn::MinOfLanes(di, lowest)), hn::GetLane(hn::MaxOfLanes(di, highest))};
}

std::size_t count_images(const std::int32_t* images, std::size_t count, std::int32_t limit) noexcept {
  const ImageTag di;
  const auto bound = hn::Set(di, limit);
  // Sums are negative: a true lane is -1.
  const auto above = [&](std::size_t i) {
    return hn::VecFromMask(di, hn::Gt(hn::LoadU(di, images + i), bound));
  };
  auto even = hn::Zero(di);
  auto odd = hn::Zero(di);
  for (std::size_t i = 0; i < count; i += 4 * lanes) {
    even = hn::Add(even, hn::Add(above(i), above(i + 2 * lanes)));
    odd = hn::Add(odd, hn::Add(above(i + lanes), above(i + 3 * lanes)));
  }
  return count - static_cast<std::size_t>(-hn::GetLane(hn::SumOfLanes(di, hn::Add(even, odd))));
}

std::size_t count_keys(const std::int64_t* keys, std::size_t count, std::int64_t limit) noexcept {
  const KeyTag dk;
  const auto bound = hn::Set(dk, limit);
  auto above = hn::Zero(dk);
  std::size_t i = 0;
  for (; i + key_lanes <= count; i += key_lanes)
    above = hn::Add(above, hn::VecFromMask(dk, hn::Gt(hn::LoadU(dk, keys + i), bound)));
  std::size_t found = i - static_cast<std::size_t>(-hn::GetLane(hn::SumOfLanes(dk, above)));
  for (; i < count; ++i) found += keys[i] <= limit ? 1 : 0;
  return found;
}

std::size_t keep_keys(std::int64_t* keys, std::size_t count, std::int64_t limit) noexcept {
  const KeyTag dk;
  const auto bound = hn::Set(dk, limit);
  std::size_t kept = 0;
  std::size_t i = 0;
  for (; i + key_lanes <= count; i += key_lanes) {
    const auto key = hn::LoadU(dk, keys + i);
    const auto pass = hn::Not(hn::Gt(key, bound));
    // Stores a whole register, which overwrites only keys already read: kept <= i.
    hn::StoreU(hn::Compress(key, pass), dk, keys + kept);
    kept += hn::CountTrue(dk, pass);
  }
  for (; i < count; ++i) {
    const std::int64_t key = keys[i];
    keys[kept] = key;
    kept += key <= limit ? 1 : 0;
  }
  return kept;
}

const SelectKKernels* select_k_table() {
  static constexpr SelectKKernels table = {
      {scan<SelectTest::at_most>, scan<SelectTest::at_least>, scan<SelectTest::not_a_number>},
      encode,
      sample,
      count_images,
      count_keys,
      keep_keys};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(select_k_table);

const SelectKKernels& select_k_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(select_k_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
