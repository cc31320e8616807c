// Clean-up of candidate lists: finds the k-th smallest score by counting, and drops entries above a cutoff.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/selection_key.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/candidate_list.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>
#include <bit>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using RowTag = hn::RebindToUnsigned<Tag>;
constexpr std::size_t lanes = hn::MaxLanes(Tag());

// Maps floats to integers in the same order (selection_key.h), so that bisection takes at most 32 steps.
HWY_INLINE std::int32_t ordered(float value) { return flip_negative(std::bit_cast<std::int32_t>(value)); }
HWY_INLINE float from_ordered(std::int32_t order) { return std::bit_cast<float>(flip_negative(order)); }

HWY_INLINE std::size_t count_at_most(const float* scores, std::size_t count, float limit) {
  const Tag df;
  const auto limits = hn::Set(df, limit);
  std::size_t found = 0;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    found += hn::CountTrue(df, hn::Le(hn::LoadU(df, scores + i), limits));
  for (; i < count; ++i) found += scores[i] <= limit ? 1 : 0;
  return found;
}

float kth_score(const float* scores, std::size_t count, std::size_t k) noexcept {
  const Tag df;
  auto least = hn::Set(df, scores[0]);
  auto most = least;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto values = hn::LoadU(df, scores + i);
    least = hn::Min(least, values);
    most = hn::Max(most, values);
  }
  float lowest = hn::GetLane(hn::MinOfLanes(df, least));
  float highest = hn::GetLane(hn::MaxOfLanes(df, most));
  for (; i < count; ++i) {
    lowest = std::min(lowest, scores[i]);
    highest = std::max(highest, scores[i]);
  }
  if (k == 1) return lowest;
  std::int64_t low = static_cast<std::int64_t>(ordered(lowest)) - 1;  // fewer than k scores are <= low
  std::int64_t high = ordered(highest);                               // at least k are <= high
  // Stop early: up to 3 % more entries than k are acceptable.
  const std::size_t enough = k + k / 32;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const std::size_t found = count_at_most(scores, count, from_ordered(static_cast<std::int32_t>(middle)));
    if (found < k) {
      low = middle;
    } else {
      high = middle;
      if (found <= enough) break;
    }
  }
  return from_ordered(static_cast<std::int32_t>(high));
}

std::size_t keep_at_most(float* scores, std::uint32_t* rows, std::size_t count, float cutoff) noexcept {
  const Tag df;
  const RowTag du;
  const auto cutoffs = hn::Set(df, cutoff);
  std::size_t kept = 0;
  std::size_t i = 0;
  // Writes never overtake reads: kept <= i.
  for (; i + lanes <= count; i += lanes) {
    const auto values = hn::LoadU(df, scores + i);
    const auto numbers = hn::LoadU(du, rows + i);
    const auto pass = hn::Le(values, cutoffs);
    hn::CompressStore(numbers, hn::RebindMask(du, pass), du, rows + kept);
    kept += hn::CompressStore(values, pass, df, scores + kept);
  }
  for (; i < count; ++i) {
    const float score = scores[i];
    scores[kept] = score;
    rows[kept] = rows[i];
    kept += score <= cutoff ? 1 : 0;
  }
  return kept;
}

const CandidateListKernels* candidate_list_table() {
  static constexpr CandidateListKernels table = {kth_score, keep_at_most};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(candidate_list_table);

const CandidateListKernels& candidate_list_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(candidate_list_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
