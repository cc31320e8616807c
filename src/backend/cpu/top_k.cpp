#include "backend/cpu/top_k.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backend/cpu/operations.h"

namespace nearwise::cpu {
namespace {

// Maps floats to integers in the same order, so that bisection ends after 32 steps.
std::int32_t ordered(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits >= 0 ? bits : std::numeric_limits<std::int32_t>::min() - bits;
}
float from_ordered(std::int32_t order) {
  return std::bit_cast<float>(order >= 0 ? order : std::numeric_limits<std::int32_t>::min() - order);
}

// The k-th smallest score or one slightly above it: at least k scores are no larger. Counting needs no memory and no
// moving of entries, and vectorises.
float kth_score(std::span<const float> scores, std::size_t k) {
  const auto at_most = [&](float value) {
    std::uint32_t found = 0;
    for (const float score : scores) found += score <= value ? 1 : 0;
    return found;
  };
  const auto [least, most] = std::ranges::minmax_element(scores);
  std::int64_t low = static_cast<std::int64_t>(ordered(*least)) - 1;  // fewer than k scores are <= low
  std::int64_t high = ordered(*most);                                 // at least k are <= high
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const std::size_t found = at_most(from_ordered(static_cast<std::int32_t>(middle)));
    if (found < k) {
      low = middle;
    } else {
      high = middle;
      if (found == k) break;
    }
  }
  return from_ordered(static_cast<std::int32_t>(high));
}

}  // namespace

std::size_t TopK::bytes_per_query(std::size_t k, std::size_t base_width, std::size_t spare) {
  return Candidates::bytes_per_query(spare, base_width) + k * sizeof(Answer) + sizeof(std::uint32_t);
}

TopK::TopK(CpuStream& stream, const PackedRows& queries, const RowsView& query_rows, std::size_t k,
           Metric metric, std::size_t spare)
    : Candidates(stream, queries, query_rows, metric, spare),
      k_(k),
      answers_(stream.budget(), query_rows.rows() * k),
      answer_counts_(stream.budget(), query_rows.rows()) {
  std::ranges::fill(answer_counts_.span(), 0U);
}

void TopK::tighten_by_scores(std::size_t query) {
  if (scores(query).size() >= k_) lower_limit(query, limit_from_score(query, kth_score(scores(query), k_)));
}

void TopK::tighten_by_answers(std::size_t query) {
  if (answer_counts_[query] == k_) lower_limit(query, bound().limit_from_key(answers_[query * k_].key));
}

std::span<const Answer> TopK::finish(std::size_t query) {
  drop_excluded(query);
  evaluate_candidates(query);
  Answer* const heap = answers_.data() + query * k_;
  std::sort_heap(heap, heap + answer_counts_[query]);
  return {heap, answer_counts_[query]};
}

std::unique_ptr<Collector> start_top_k(Stream& stream, const TopKArgs& args) {
  return std::make_unique<TopK>(cpu_stream(stream), static_cast<const PackedRows&>(args.queries),
                                args.query_rows, args.k, args.metric, TopK::usual_spare(args.k));
}

}  // namespace nearwise::cpu
