#include "duplicates/duplicate_pairs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/distance.h"

namespace nearwise::duplicates {
namespace {

constexpr std::size_t max_rows = UINT32_MAX;

std::size_t checked_rows(const RangeNeighbors& pairs) {
  const std::vector<std::size_t>& offsets = pairs.offsets;
  require(!offsets.empty() && offsets.front() == 0 && offsets.back() == pairs.ids.size() &&
              std::ranges::is_sorted(offsets),
          "dedup_pairs: offsets must ascend from 0 to the number of ids");
  require(pairs.distances.size() == pairs.ids.size(),
          "dedup_pairs: as many distances as ids expected, got {} and {}", pairs.distances.size(),
          pairs.ids.size());
  const std::size_t rows = offsets.size() - 1;
  require(rows <= max_rows, "dedup_pairs: at most {} rows expected, got {}", max_rows, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    auto previous = static_cast<Id>(row);
    for (std::size_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      require(pairs.ids[i] > previous && pairs.ids[i] < static_cast<Id>(rows),
              "dedup_pairs: rows after row {} in ascending order expected, below {}, got {} after {}", row,
              rows, pairs.ids[i], previous);
      require(!std::isnan(pairs.distances[i]), "dedup_pairs: the distance of rows {} and {} is NaN", row,
              pairs.ids[i]);
      previous = pairs.ids[i];
    }
  }
  return rows;
}

}  // namespace

std::uint64_t DuplicatePairs::bytes(std::size_t rows, std::size_t pairs) {
  return buffer_bytes(rows, sizeof(std::size_t)) + buffer_bytes(2 * pairs, sizeof(Duplicate));
}

DuplicatePairs::DuplicatePairs(MemoryBudget& budget, const RangeNeighbors& pairs, Metric metric)
    : ends_(budget, checked_rows(pairs)), duplicates_(budget, 2 * pairs.ids.size()) {
  const auto for_each_pair = [&](const auto& visit) {
    for (std::size_t row = 0; row < rows(); ++row)
      for (std::size_t i = pairs.offsets[row]; i < pairs.offsets[row + 1]; ++i)
        visit(row, static_cast<std::size_t>(pairs.ids[i]), pairs.distances[i]);
  };
  std::ranges::fill(ends_.span(), std::size_t{0});
  for_each_pair([&](std::size_t row, std::size_t later, float) {
    ++ends_[row];
    ++ends_[later];
  });
  // First each row's begin, then its end: filling moves it there. Pairs with earlier rows come before those
  // of the row itself.
  std::size_t begin = 0;
  for (std::size_t& end : ends_.span()) begin += std::exchange(end, begin);
  for_each_pair([&](std::size_t row, std::size_t later, float distance) {
    const float key = sort_key(metric, distance);
    duplicates_[ends_[row]++] = {static_cast<std::uint32_t>(later), key};
    duplicates_[ends_[later]++] = {static_cast<std::uint32_t>(row), key};
  });
}

}  // namespace nearwise::duplicates
