// The definition of the removal of duplicates, executed: a dense table of all pairs, and rows one by one in
// the order in which they would be kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "nearwise/dedup.h"
#include "nearwise/exact.h"

namespace nearwise::oracle {

class Dedup {
 public:
  Dedup(const RangeNeighbors& pairs, const DedupOptions& options)
      : options_(options), rows_(pairs.offsets.size() - 1), keys_(rows_ * rows_, none) {
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t i = pairs.offsets[row]; i < pairs.offsets[row + 1]; ++i) {
        const auto other = static_cast<std::size_t>(pairs.ids[i]);
        const double distance = pairs.distances[i];
        keys_[row * rows_ + other] = keys_[other * rows_ + row] =
            options.metric == Metric::inner_product ? -distance : distance;
      }
  }

  Deduplication find() const {
    Deduplication found;
    found.groups.assign(rows_, no_id);
    found.removed_by.assign(rows_, no_id);
    const bool largest_first = options_.metric == Metric::inner_product;
    const float padding = std::numeric_limits<float>::infinity();
    found.distances.assign(rows_, largest_first ? -padding : padding);
    const std::vector<std::size_t> order = in_order();
    if (options_.grouping == DuplicateGrouping::star) {
      std::vector<std::size_t> kept;
      for (const std::size_t row : order) {
        remove(row, nearest(row, kept), found);
        if (found.removed_by[row] == no_id) kept.push_back(row);
      }
    } else {
      for (const std::size_t row : order)
        if (found.groups[row] == no_id) spread(row, found);
    }
    for (std::size_t row = 0; row < rows_; ++row)
      if (found.removed_by[row] == no_id) found.kept.push_back(static_cast<Id>(row));
    return found;
  }

 private:
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();
  bool are_duplicates(std::size_t left, std::size_t right) const {
    return keys_[left * rows_ + right] == keys_[left * rows_ + right];
  }

  // Most to be kept first.
  std::vector<std::size_t> in_order() const {
    std::vector<std::size_t> order(rows_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::size_t> counts(rows_);
    std::vector<double> sums(rows_);
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t other = 0; other < rows_; ++other)
        if (are_duplicates(row, other)) {
          ++counts[row];
          sums[row] += keys_[row * rows_ + other];
        }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
      if (options_.keep == KeptRow::scored) return options_.scores[left] > options_.scores[right];
      if (options_.keep == KeptRow::first) return false;
      if (counts[left] != counts[right]) return counts[left] > counts[right];
      return sums[left] < sums[right];
    });
    return order;
  }

  // Of `among`, the nearest duplicate of the row, then the lowest; the row itself if there is none.
  std::size_t nearest(std::size_t row, const std::vector<std::size_t>& among) const {
    std::size_t best = row;
    for (const std::size_t other : among) {
      if (!are_duplicates(row, other)) continue;
      const double key = keys_[row * rows_ + other];
      const double best_key = keys_[row * rows_ + best];
      if (best == row || key < best_key || (key == best_key && other < best)) best = other;
    }
    return best;
  }

  void remove(std::size_t row, std::size_t by, Deduplication& found) const {
    found.groups[row] = by == row ? static_cast<Id>(row) : found.groups[by];
    if (by == row) return;
    found.removed_by[row] = static_cast<Id>(by);
    const double key = keys_[row * rows_ + by];
    found.distances[row] = static_cast<float>(options_.metric == Metric::inner_product ? -key : key);
  }

  // The component of `kept`, one pair further in each round.
  void spread(std::size_t kept, Deduplication& found) const {
    remove(kept, kept, found);
    std::vector<std::size_t> level = {kept};
    while (!level.empty()) {
      std::vector<std::size_t> next;
      for (std::size_t row = 0; row < rows_; ++row)
        if (found.groups[row] == no_id && nearest(row, level) != row) next.push_back(row);
      for (const std::size_t row : next) remove(row, nearest(row, level), found);
      level = next;
    }
  }

  const DedupOptions options_;
  const std::size_t rows_;
  std::vector<double> keys_;  // [rows, rows]; none: no duplicates
};

}  // namespace nearwise::oracle
