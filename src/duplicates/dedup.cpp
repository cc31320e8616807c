// Near-duplicates: which rows are kept, and which row removed each of the others.
#include "nearwise/dedup.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/distance.h"
#include "duplicates/duplicate_pairs.h"
#include "ops/memory_limit.h"
#include "ops/threshold_join.h"

namespace nearwise {
namespace duplicates {
namespace {

constexpr const char* operation = "dedup";
constexpr std::size_t rows_between_checks = 65536;  // of cancellation: below 10 ms

void check_options(const DedupOptions& options, std::size_t rows) {
  if (options.keep != KeptRow::scored) {
    require(options.scores.empty(), "{}: scores need keep = scored", operation);
    return;
  }
  require(options.scores.size() == rows, "{}: a score for each of the {} rows expected, got {}", operation,
          rows, options.scores.size());
  for (std::size_t row = 0; row < rows; ++row)
    require(!std::isnan(options.scores[row]), "{}: the score of row {} is NaN", operation, row);
}

// Sums of the sort keys of each row's duplicates, in the order of rows.
std::vector<double> key_sums(const DuplicatePairs& pairs) {
  std::vector<double> sums(pairs.rows());
  for (std::size_t row = 0; row < pairs.rows(); ++row)
    for (const Duplicate& duplicate : pairs.of(row)) sums[row] += duplicate.key;
  return sums;
}

// Rows in the order in which they would be kept.
std::vector<std::uint32_t> order_of(const DuplicatePairs& pairs, const DedupOptions& options) {
  std::vector<std::uint32_t> order(pairs.rows());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  if (options.keep == KeptRow::scored) {
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](std::uint32_t row) { return options.scores[row]; });
  } else if (options.keep == KeptRow::medoid) {
    const std::vector<double> sums = key_sums(pairs);
    std::ranges::stable_sort(order, [&](std::uint32_t left, std::uint32_t right) {
      const std::size_t of_left = pairs.of(left).size();
      const std::size_t of_right = pairs.of(right).size();
      return of_left > of_right || (of_left == of_right && sums[left] < sums[right]);
    });
  }
  return order;
}

class Groups {
 public:
  Groups(const Context& context, const DuplicatePairs& pairs, const DedupOptions& options)
      : cancel_(context.state().cancel), pairs_(pairs), metric_(options.metric) {
    result_.groups.assign(pairs.rows(), no_id);
    result_.removed_by.assign(pairs.rows(), no_id);
    result_.distances.assign(pairs.rows(), padding_distance(metric_));
  }

  Deduplication find(std::span<const std::uint32_t> order, DuplicateGrouping grouping) {
    if (grouping == DuplicateGrouping::star) {
      find_stars(order);
    } else {
      find_components(order);
    }
    for (std::size_t row = 0; row < pairs_.rows(); ++row)
      if (result_.removed_by[row] == no_id) result_.kept.push_back(static_cast<Id>(row));
    return std::move(result_);
  }

 private:
  void check_cancelled() {
    if (++visited_ % rows_between_checks == 0) cancel_.check();
  }
  // `row` belongs to the group of `by`, which removes it if it is the nearest that did so.
  void remove(const Duplicate& removed, std::uint32_t by) {
    const std::size_t row = removed.row;
    const bool is_removed = result_.removed_by[row] != no_id;
    const float best = sort_key(metric_, result_.distances[row]);
    if (is_removed && (best < removed.key || (best == removed.key && result_.removed_by[row] < Id{by})))
      return;
    result_.removed_by[row] = by;
    result_.groups[row] = result_.groups[by];
    result_.distances[row] = distance_of_key(metric_, removed.key);
  }

  void find_stars(std::span<const std::uint32_t> order) {
    std::vector<bool> is_decided(pairs_.rows());
    for (const std::uint32_t row : order) {
      check_cancelled();
      is_decided[row] = true;
      if (result_.removed_by[row] != no_id) continue;
      result_.groups[row] = row;
      for (const Duplicate& duplicate : pairs_.of(row))
        if (!is_decided[duplicate.row]) remove(duplicate, row);
    }
  }

  // Breadth first from the kept row of each component.
  void find_components(std::span<const std::uint32_t> order) {
    std::vector<bool> is_reached(pairs_.rows());
    std::vector<std::uint32_t> level;
    std::vector<std::uint32_t> next;
    for (const std::uint32_t kept : order) {
      if (is_reached[kept]) continue;
      is_reached[kept] = true;
      result_.groups[kept] = kept;
      for (level = {kept}; !level.empty(); std::swap(level, next)) {
        next.clear();
        for (const std::uint32_t row : level) {
          check_cancelled();
          for (const Duplicate& duplicate : pairs_.of(row)) {
            if (is_reached[duplicate.row]) continue;
            if (result_.removed_by[duplicate.row] == no_id) next.push_back(duplicate.row);
            remove(duplicate, row);
          }
        }
        for (const std::uint32_t row : next) is_reached[row] = true;
      }
    }
  }

  const CancelFlag& cancel_;
  const DuplicatePairs& pairs_;
  const Metric metric_;
  Deduplication result_;
  std::size_t visited_ = 0;
};

// Of the result, and of the order of rows and its keys.
std::uint64_t row_bytes(std::size_t rows) {
  return rows * (3 * sizeof(Id) + sizeof(float) + 2 * sizeof(std::uint32_t) + 2 * sizeof(double));
}
// Of all that is needed in addition to given pairs.
std::uint64_t bytes_for(std::size_t rows, std::size_t pairs) {
  return row_bytes(rows) + DuplicatePairs::bytes(rows, pairs);
}
std::uint64_t bytes_of(const RangeNeighbors& pairs) {
  return pairs.ids.size() * (sizeof(Id) + sizeof(float)) + pairs.offsets.size() * sizeof(std::size_t);
}

}  // namespace
}  // namespace duplicates

std::string_view name(KeptRow kept) {
  switch (kept) {
    case KeptRow::medoid: return "medoid";
    case KeptRow::scored: return "scored";
    case KeptRow::first: break;
  }
  return "first";
}

std::string_view name(DuplicateGrouping grouping) {
  return grouping == DuplicateGrouping::connected ? "connected" : "star";
}

float threshold_of_similarity(Metric metric, double similarity) {
  require(!std::isnan(similarity), "the similarity must be a number, got NaN");
  if (metric == Metric::inner_product) return static_cast<float>(similarity);
  require(metric == Metric::cosine, "a similarity needs the metric cosine or inner_product, got {}",
          name(metric));
  require(similarity <= 1, "the similarity must be at most 1 for cosine, got {}{}", similarity,
          similarity <= 100 ? fmt::format("; {} % is {}", similarity, similarity / 100) : "");
  return static_cast<float>(1.0 - similarity);
}

Deduplication dedup_pairs(const Context& context, const RangeNeighbors& pairs, const DedupOptions& options) {
  MemoryBudget& budget = *context.state().budget;
  const std::size_t rows = pairs.offsets.empty() ? 0 : pairs.offsets.size() - 1;
  check_memory(duplicates::operation, context, duplicates::bytes_for(rows, pairs.ids.size()));
  const duplicates::DuplicatePairs both_ways(budget, pairs, options.metric);
  duplicates::check_options(options, rows);
  const Reservation reservation(budget, duplicates::row_bytes(rows));
  const std::vector<std::uint32_t> order = duplicates::order_of(both_ways, options);
  Deduplication result = duplicates::Groups(context, both_ways, options).find(order, options.grouping);
  result.pairs = pairs.ids.size();
  return result;
}

Deduplication dedup(const Context& context, RowsView rows, float threshold, const DedupOptions& options) {
  duplicates::check_options(options, rows.rows());
  // The first pairs count: about one for each row.
  const std::uint64_t kept_free = duplicates::bytes_for(rows.rows(), rows.rows());
  const RangeNeighbors pairs =
      join_rows(duplicates::operation, context, rows, threshold, options.metric, kept_free);
  check_memory(duplicates::operation, context,
               duplicates::bytes_of(pairs) + duplicates::bytes_for(rows.rows(), pairs.ids.size()));
  const Reservation reservation(*context.state().budget, duplicates::bytes_of(pairs));
  return dedup_pairs(context, pairs, options);
}

}  // namespace nearwise
