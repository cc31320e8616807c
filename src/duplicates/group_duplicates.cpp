#include "duplicates/group_duplicates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"

namespace nearwise::duplicates {
namespace {

constexpr std::size_t rows_between_checks = 65536;  // of cancellation: below 10 ms

// Rows in the order in which they would be kept.
class KeepingOrder {
 public:
  KeepingOrder(MemoryBudget& budget, std::size_t rows, const DuplicatesOf& duplicates_of,
               const DedupOptions& options)
      : is_by_row_(options.keep == KeptRow::first), order_(budget, is_by_row_ ? 0 : rows) {
    if (is_by_row_) return;
    std::iota(order_.span().begin(), order_.span().end(), std::uint32_t{0});
    const Reservation sorting(budget, rows * sizeof(std::uint32_t));
    if (options.keep == KeptRow::scored) {
      std::ranges::stable_sort(order_.span(), std::ranges::greater(),
                               [&](std::uint32_t row) { return options.scores[row]; });
      return;
    }
    Buffer<std::uint32_t> counts(budget, rows);
    Buffer<double> sums(budget, rows);  // of sort keys, in the order of rows
    for (std::size_t row = 0; row < rows; ++row) {
      const std::span<const Duplicate> duplicates = duplicates_of(row);
      counts[row] = static_cast<std::uint32_t>(duplicates.size());
      sums[row] = 0;
      for (const Duplicate& duplicate : duplicates) sums[row] += duplicate.key;
    }
    std::ranges::stable_sort(order_.span(), [&](std::uint32_t left, std::uint32_t right) {
      return counts[left] > counts[right] || (counts[left] == counts[right] && sums[left] < sums[right]);
    });
  }

  std::uint32_t operator[](std::size_t place) const {
    return is_by_row_ ? static_cast<std::uint32_t>(place) : order_[place];
  }

 private:
  bool is_by_row_;
  Buffer<std::uint32_t> order_;
};

class Grouping {
 public:
  Grouping(const Context& context, std::size_t rows, const DuplicatesOf& duplicates_of)
      : budget_(*context.state().budget),
        cancel_(context.state().cancel),
        duplicates_of_(duplicates_of),
        groups_(budget_, rows) {}

  Groups find(const KeepingOrder& order, DuplicateGrouping grouping) {
    grouping == DuplicateGrouping::star ? find_stars(order) : find_components(order);
    return std::move(groups_);
  }

 private:
  void check_cancelled() {
    if (++visited_ % rows_between_checks == 0) cancel_.check();
  }
  // `row` belongs to the group of `by`, which removes it if it is the nearest that did so.
  void remove(const Duplicate& removed, std::uint32_t by) {
    const std::uint32_t row = removed.row;
    const float best = groups_.keys[row];
    if (!groups_.is_kept(row) &&
        (best < removed.key || (best == removed.key && groups_.removed_by[row] < by)))
      return;
    groups_.removed_by[row] = by;
    groups_.kept_by[row] = groups_.kept_by[by];
    groups_.keys[row] = removed.key;
  }

  void find_stars(const KeepingOrder& order) {
    const Reservation bits(budget_, groups_.rows() / 8);
    std::vector<bool> is_decided(groups_.rows());
    for (std::size_t place = 0; place < groups_.rows(); ++place) {
      check_cancelled();
      const std::uint32_t row = order[place];
      is_decided[row] = true;
      if (!groups_.is_kept(row)) continue;
      groups_.kept_by[row] = row;
      for (const Duplicate& duplicate : duplicates_of_(row))
        if (!is_decided[duplicate.row]) remove(duplicate, row);
    }
  }

  // Breadth first from the kept row of each component.
  void find_components(const KeepingOrder& order) {
    const Reservation reserved(budget_, groups_.rows() / 8 + 2 * groups_.rows() * sizeof(std::uint32_t));
    std::vector<bool> is_reached(groups_.rows());
    std::vector<std::uint32_t> level;
    std::vector<std::uint32_t> next;
    for (std::size_t place = 0; place < groups_.rows(); ++place) {
      const std::uint32_t kept = order[place];
      check_cancelled();
      if (is_reached[kept]) continue;
      is_reached[kept] = true;
      groups_.kept_by[kept] = kept;
      for (level = {kept}; !level.empty(); std::swap(level, next)) {
        next.clear();
        for (const std::uint32_t row : level) {
          check_cancelled();
          for (const Duplicate& duplicate : duplicates_of_(row)) {
            if (is_reached[duplicate.row]) continue;
            if (groups_.is_kept(duplicate.row)) next.push_back(duplicate.row);
            remove(duplicate, row);
          }
        }
        for (const std::uint32_t row : next) is_reached[row] = true;
      }
    }
  }

  MemoryBudget& budget_;
  const CancelFlag& cancel_;
  const DuplicatesOf& duplicates_of_;
  Groups groups_;
  std::size_t visited_ = 0;
};

}  // namespace

Groups::Groups(MemoryBudget& budget, std::size_t rows)
    : kept_by(budget, rows), removed_by(budget, rows), keys(budget, rows) {
  std::ranges::fill(kept_by.span(), no_row);
  std::ranges::fill(removed_by.span(), no_row);
  std::ranges::fill(keys.span(), std::numeric_limits<float>::infinity());
}

void check_options(const DedupOptions& options, std::size_t rows) {
  if (options.keep != KeptRow::scored) {
    require(options.scores.empty(), "dedup: scores need keep = scored");
    return;
  }
  require(options.scores.size() == rows, "dedup: a score for each of the {} rows expected, got {}", rows,
          options.scores.size());
  for (std::size_t row = 0; row < rows; ++row)
    require(!std::isnan(options.scores[row]), "dedup: the score of row {} is NaN", row);
}

Groups group_duplicates(const Context& context, std::size_t rows, const DuplicatesOf& duplicates_of,
                        const DedupOptions& options) {
  const KeepingOrder order(*context.state().budget, rows, duplicates_of, options);
  return Grouping(context, rows, duplicates_of).find(order, options.grouping);
}

std::uint64_t grouping_bytes(std::size_t rows, const DedupOptions& options) {
  // Groups, and bits of rows.
  std::uint64_t bytes = 3 * buffer_bytes(rows, sizeof(std::uint32_t)) + rows / 8 + 64;
  if (options.grouping == DuplicateGrouping::connected) bytes += 2 * rows * sizeof(std::uint32_t);
  // The order, and what it is sorted by.
  if (options.keep != KeptRow::first) bytes += 2 * buffer_bytes(rows, sizeof(std::uint32_t));
  if (options.keep == KeptRow::medoid)
    bytes += buffer_bytes(rows, sizeof(double)) + buffer_bytes(rows, sizeof(std::uint32_t));
  return bytes;
}

}  // namespace nearwise::duplicates
