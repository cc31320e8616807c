// Near-duplicates among vectors in memory.
#include "nearwise/dedup.h"

#include <cmath>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/distance.h"
#include "duplicates/duplicate_pairs.h"
#include "duplicates/group_duplicates.h"
#include "ops/memory_limit.h"
#include "ops/threshold_join.h"

namespace nearwise {
namespace duplicates {
namespace {

constexpr const char* dedup_operation = "dedup";

std::uint64_t result_bytes(std::size_t rows) { return rows * (3 * sizeof(Id) + sizeof(float)); }
// Of all that is needed in addition to given pairs.
std::uint64_t bytes_for(std::size_t rows, std::size_t pairs, const DedupOptions& options) {
  return grouping_bytes(rows, options) + result_bytes(rows) + DuplicatePairs::bytes(rows, pairs);
}
std::uint64_t bytes_of(const RangeNeighbors& pairs) {
  return pairs.ids.size() * (sizeof(Id) + sizeof(float)) + pairs.offsets.size() * sizeof(std::size_t);
}

Deduplication result_of(const Groups& groups, Metric metric) {
  Deduplication result;
  result.groups.reserve(groups.rows());
  result.removed_by.reserve(groups.rows());
  result.distances.reserve(groups.rows());
  for (std::size_t row = 0; row < groups.rows(); ++row) {
    result.groups.push_back(groups.kept_by[row]);
    result.removed_by.push_back(groups.remover(row));
    result.distances.push_back(distance_of_key(metric, groups.keys[row]));
    if (groups.is_kept(row)) result.kept.push_back(static_cast<Id>(row));
  }
  return result;
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
  check_memory(duplicates::dedup_operation, context, duplicates::bytes_for(rows, pairs.ids.size(), options));
  const duplicates::DuplicatePairs both_ways(budget, pairs, options.metric);
  duplicates::check_options(options, rows);
  const Reservation reservation(budget, duplicates::result_bytes(rows));
  const auto duplicates_of = [&](std::size_t row) { return both_ways.of(row); };
  Deduplication result = duplicates::result_of(
      duplicates::group_duplicates(context, rows, duplicates_of, options), options.metric);
  result.pairs = pairs.ids.size();
  return result;
}

Deduplication dedup(const Context& context, RowsView rows, float threshold, const DedupOptions& options) {
  duplicates::check_options(options, rows.rows());
  // The first pairs count: about one for each row.
  const std::uint64_t kept_free = duplicates::bytes_for(rows.rows(), rows.rows(), options);
  const RowRange all = {0, rows.rows()};
  const RangeNeighbors pairs =
      join_rows(duplicates::dedup_operation, context, rows, all, all, threshold, options.metric, kept_free);
  check_memory(duplicates::dedup_operation, context,
               duplicates::bytes_of(pairs) + duplicates::bytes_for(rows.rows(), pairs.ids.size(), options));
  const Reservation reservation(*context.state().budget, duplicates::bytes_of(pairs));
  return dedup_pairs(context, pairs, options);
}

}  // namespace nearwise
