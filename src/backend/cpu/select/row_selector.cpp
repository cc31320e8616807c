#include "backend/cpu/select/row_selector.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backend/cpu/kernels/selection_key.h"
#include "core/checked.h"

namespace nearwise::cpu {
namespace {

// Values or keys between checks of the cancel flag: less than 10 ms in scalar code.
constexpr std::size_t step = std::size_t{1} << 18;
// Keys per sort, about 10 ms with AVX-512; more are sorted in runs and merged.
constexpr std::size_t sorted_at_once = std::size_t{1} << 20;

// Rows up to this length are sampled completely, which makes the estimate exact.
constexpr std::size_t largest_sample = 4096;
constexpr std::size_t smallest_sample = 2048;
// Consecutive values of a sample, four cache lines. Single lines would represent ordered rows better but take
// almost twice as long to read (5.6 against 3.1 us for 2048 values of an uncached row).
constexpr std::size_t sample_chunk = 64;

constexpr std::uint32_t last_position = std::numeric_limits<std::uint32_t>::max();

std::size_t capacity_for(std::size_t columns, std::size_t k) {
  // Room for a segment in addition to the keys that tighten() leaves, and for a loose estimate.
  const std::size_t wanted = k < columns / 2 ? 2 * k + 2 * select_segment : columns;
  return std::min(columns, wanted);
}

// Keys that tighten() may leave beyond k: finding the exact k-th takes many more passes.
std::size_t slack_for(std::size_t k) { return k / 8 + 8; }

// Rank within the sample whose value becomes the threshold. About `expected` of the k best are in the sample;
// the added standard deviations keep the share of rows that need a second scan below 1 %.
std::size_t rank_for(std::size_t k, std::size_t sample, std::size_t count) {
  const double expected = static_cast<double>(k) * static_cast<double>(sample) / static_cast<double>(count);
  return static_cast<std::size_t>(expected + 2.5 * std::sqrt(expected) + 2);
}

// A number in (low, high] such that count(number) >= rank: the first one found with count <= rank + slack,
// otherwise the smallest. Requires count(low) < rank <= count(high).
template <typename Integer, typename Count>
Integer bisect(Integer low, Integer high, std::size_t rank, std::size_t slack, const Count& count) {
  using Unsigned = std::make_unsigned_t<Integer>;
  for (;;) {
    const Unsigned distance = static_cast<Unsigned>(high) - static_cast<Unsigned>(low);
    if (distance <= 1) return high;
    const auto middle = static_cast<Integer>(static_cast<Unsigned>(low) + distance / 2);
    const std::size_t found = count(middle);
    if (found < rank) {
      low = middle;
    } else {
      high = middle;
      if (found <= rank + slack) return high;
    }
  }
}

}  // namespace

bool KeyOrder::operator()(std::int64_t left, std::int64_t right) const {
  if (image_of_key(left) != image_of_key(right)) return left < right;
  const Id left_id = ids.at(position_of_key(left));
  const Id right_id = ids.at(position_of_key(right));
  return left_id != right_id ? left_id < right_id : left < right;
}

std::uint64_t RowSelector::bytes(std::size_t columns, std::size_t k) {
  const std::size_t capacity = capacity_for(columns, k);
  return buffer_bytes(capacity + select_overrun, sizeof(std::int64_t)) +
         buffer_bytes(capacity > sorted_at_once ? capacity + select_overrun : 0, sizeof(std::int64_t)) +
         buffer_bytes(largest_sample, sizeof(std::int32_t));
}

RowSelector::RowSelector(const CpuStream& stream, std::size_t columns, std::size_t k)
    : stream_(stream),
      k_(k),
      capacity_(capacity_for(columns, k)),
      keys_(stream.budget(), capacity_ + select_overrun),
      merged_(stream.budget(), capacity_ > sorted_at_once ? capacity_ + select_overrun : 0),
      images_(stream.budget(), largest_sample) {}

std::span<const std::int64_t> RowSelector::select(const float* values, std::size_t count, const RowIds& ids,
                                                  Order order) {
  const Row row = {values, count, ids, order, std::min(k_, count)};
  const SelectTest test = order == Order::smallest ? SelectTest::at_most : SelectTest::at_least;
  count_ = 0;
  tie_image_ = std::numeric_limits<std::int32_t>::min();  // none
  if (row.k >= count / 2 && count <= capacity_) {
    encode(row);
  } else {
    limit_ = estimate(row);
    gather(row, test);
    if (count_ < row.k && limit_ < infinity_image) {
      count_ = 0;
      limit_ = infinity_image;
      gather(row, test);
    }
    if (count_ < row.k) gather(row, SelectTest::not_a_number);
  }
  // Sorting a few more keys is faster than dropping them.
  if (count_ > 2 * row.k + 128) tighten(row);
  sort();
  if (ids.given()) order_ties(row);
  return {keys_.data(), row.k};
}

// Estimates the image of the k-th value.
std::int32_t RowSelector::estimate(const Row& row) {
  SampleArgs args = {.row = row.values, .order = row.order, .images = images_.data()};
  std::size_t rank = row.k;
  if (row.count <= largest_sample) {
    args.length = row.count;
    args.chunks = 1;
  } else {
    // Evenly spread, so that sorted rows are sampled well too.
    const std::size_t size = row.k < row.count / 256 ? smallest_sample : largest_sample;
    args.length = sample_chunk;
    args.chunks = size / sample_chunk;
    args.stride = row.count / args.chunks;
    rank = rank_for(row.k, size, row.count);
  }
  const std::size_t size = args.length * args.chunks;
  std::size_t counted = round_up(size, sample_granule);
  if (row.count > largest_sample) {
    args.groups = round_up(8 * rank, sample_granule);
    counted = std::min(counted, args.groups);
  }
  const ImageRange range = stream_.select_k.sample(args);
  lowest_ = range.lowest;
  if (rank >= size || range.lowest >= infinity_image) return infinity_image;
  return bisect(
      range.lowest - 1, std::min(range.highest, infinity_image), rank, rank / 8,
      [&](std::int32_t limit) { return stream_.select_k.count_images(images_.data(), counted, limit); });
}

void RowSelector::gather(const Row& row, SelectTest test) {
  const auto scan = stream_.select_k.scan[static_cast<std::size_t>(test)];
  highest_ = test == SelectTest::not_a_number ? nan_image : limit_;
  for (std::size_t next = 0; next < row.count;) {
    stream_.context.cancel.check();
    const std::size_t end = std::min(row.count, next + step);
    const SelectScanEnd result = scan({.row = row.values,
                                       .begin = next,
                                       .end = end,
                                       .threshold = threshold_of(limit_, row.order),
                                       .keys = keys_.data(),
                                       .count = count_,
                                       .capacity = capacity_});
    count_ = result.count;
    next = result.next;
    if (next < end) tighten(row);
    // NaNs are ordered by position.
    if (test == SelectTest::not_a_number && count_ >= row.k && !row.ids.given()) return;
  }
}

void RowSelector::encode(const Row& row) {
  for (std::size_t first = 0; first < row.count; first += step) {
    stream_.context.cancel.check();
    stream_.select_k.encode(row.values, first, std::min(row.count, first + step), row.order, keys_.data());
  }
  count_ = row.count;
  lowest_ = std::numeric_limits<std::int32_t>::min() + 1;
  highest_ = nan_image;
}

void RowSelector::tighten(const Row& row) {
  const std::size_t slack = slack_for(row.k);
  // Fewer than k keys are below the sample's lowest image unless the sample was not representative.
  std::int32_t below = lowest_ - 1;
  if (count_keys(make_key(below, last_position)) >= row.k) below = std::numeric_limits<std::int32_t>::min();
  if (row.ids.given()) {
    tighten_by_ids(row, below);
    return;
  }
  const std::int64_t limit = bisect(make_key(below, last_position), make_key(highest_, last_position), row.k,
                                    slack, [&](std::int64_t key) { return count_keys(key); });
  keep_keys(limit);
  highest_ = image_of_key(limit);
  // Equal values at later positions lose the tie to the k keys already found.
  limit_ = highest_ - 1;
}

// Equal values at later positions may have better ids, so they pass. Frequent in rows with few distinct
// values.
void RowSelector::tighten_by_ids(const Row& row, std::int32_t below) {
  const std::size_t slack = slack_for(row.k);
  const auto count = [&](std::int32_t image) { return count_keys(make_key(image, last_position)); };
  // The k-th image is often the same as last time.
  const bool again = highest_ == tie_image_ && below < highest_ && count(highest_ - 1) < row.k;
  const std::int32_t limit = again ? highest_ : bisect(below, highest_, row.k, slack, count);
  keep_keys(make_key(limit, last_position));
  highest_ = limit_ = limit;
  std::int64_t* const keys = keys_.data();
  if (again) {
    const auto hopeless = [&](std::int64_t key) {
      return image_of_key(key) == limit && row.ids.at(position_of_key(key)) > worst_id_;
    };
    count_ = static_cast<std::size_t>(std::remove_if(keys, keys + count_, hopeless) - keys);
  }
  if (count_ <= row.k + slack) return;
  // More than k + slack keys are left only if the k-th is one of many equal values.
  std::nth_element(keys, keys + row.k - 1, keys + count_, KeyOrder{row.ids});
  count_ = row.k;
  tie_image_ = limit;
  worst_id_ = row.ids.at(position_of_key(keys[row.k - 1]));
}

// Sorts equal values, so far ordered by position, by id.
void RowSelector::order_ties(const Row& row) {
  for (std::size_t begin = 0; begin < row.k;) {
    std::size_t end = begin + 1;
    while (end < count_ && image_of_key(keys_[end]) == image_of_key(keys_[begin])) ++end;
    if (end - begin > 1) std::sort(keys_.data() + begin, keys_.data() + end, KeyOrder{row.ids});
    begin = end;
  }
}

void RowSelector::sort() {
  for (std::size_t first = 0; first < count_; first += sorted_at_once) {
    stream_.context.cancel.check();
    sorter_.sort(keys_.data() + first, std::min(sorted_at_once, count_ - first));
  }
  for (std::size_t run = sorted_at_once; run < count_; run *= 2) merge(run);
}

// Merges neighbouring sorted runs, `run` keys each.
void RowSelector::merge(std::size_t run) {
  for (std::size_t begin = 0; begin < count_; begin += 2 * run) {
    const std::int64_t* left = keys_.data() + begin;
    const std::int64_t* const left_end = keys_.data() + std::min(count_, begin + run);
    const std::int64_t* right = left_end;
    const std::int64_t* const right_end = keys_.data() + std::min(count_, begin + 2 * run);
    std::int64_t* out = merged_.data() + begin;
    for (std::size_t written = 0; left != left_end && right != right_end; ++written) {
      if (written % step == 0) stream_.context.cancel.check();
      const bool take_left = *left < *right;
      *out++ = take_left ? *left : *right;
      left += take_left ? 1 : 0;
      right += take_left ? 0 : 1;
    }
    out = std::copy(left, left_end, out);
    std::copy(right, right_end, out);
  }
  std::swap(keys_, merged_);
}

std::size_t RowSelector::count_keys(std::int64_t limit) const {
  std::size_t found = 0;
  for (std::size_t first = 0; first < count_; first += step) {
    stream_.context.cancel.check();
    found += stream_.select_k.count_keys(keys_.data() + first, std::min(step, count_ - first), limit);
  }
  return found;
}

void RowSelector::keep_keys(std::int64_t limit) {
  std::size_t kept = 0;
  for (std::size_t first = 0; first < count_; first += step) {
    const std::size_t found =
        stream_.select_k.keep_keys(keys_.data() + first, std::min(step, count_ - first), limit);
    std::memmove(keys_.data() + kept, keys_.data() + first, found * sizeof(std::int64_t));
    kept += found;
  }
  count_ = kept;
}

}  // namespace nearwise::cpu
