#include "backend/cpu/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backend/cpu/operations.h"
#include "core/check.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

// A cutoff that nothing passes. Not -infinity: an overflowing score is that too.
constexpr float never = std::numeric_limits<float>::quiet_NaN();

// Entries past a list's capacity that a vector store may overwrite (16 floats of AVX-512).
constexpr std::size_t store_slack = 16;

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
float kth_score(const float* scores, std::size_t count, std::size_t k) {
  const auto at_most = [&](float value) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < count; ++i) found += scores[i] <= value ? 1 : 0;
    return found;
  };
  const auto [least, most] = std::minmax_element(scores, scores + count);
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

void write_answers(std::span<const Answer> answers, Metric metric, Id id_offset, std::span<Id> ids,
                   std::span<float> distances) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool there = i < answers.size();
    ids[i] = there ? id_offset + static_cast<Id>(answers[i].row) : no_id;
    distances[i] = there ? distance_of_key(metric, answers[i].key) : padding_distance(metric);
  }
}

RowEvaluator::RowEvaluator(const CpuStream& stream, const RowsView& queries, std::size_t query,
                           const RowsView& base, Metric metric)
    : base_(base), metric_(metric), query_(stream.budget(), queries.dim()) {
  row_to_double(queries, query, query_.data());
  const auto type = static_cast<std::size_t>(base.type());
  switch (metric) {
    case Metric::sqeuclidean:
    case Metric::euclidean: function_ = stream.row_distance.difference[type]; return;
    case Metric::inner_product: function_ = stream.row_distance.product[type]; return;
    case Metric::cosine: break;
  }
  function_ = stream.row_distance.product_and_norm[type];
  double unused = 0;
  const auto query_function = stream.row_distance.product_and_norm[static_cast<std::size_t>(queries.type())];
  query_function({.query = query_.data(),
                  .base = queries.row(query),
                  .stride_bytes = 0,
                  .dim = queries.dim(),
                  .rows = nullptr,
                  .count = 1,
                  .sums = &unused,
                  .norms = &query_norm_});
}

void RowEvaluator::evaluate(const std::uint32_t* rows, std::size_t first, std::size_t count,
                            float* keys) const {
  NEARWISE_ASSERT(count <= batch);
  double sums[batch];
  double norms[batch];
  if (rows != nullptr) {
    // Listed rows lie anywhere: start fetching all of them before the first is needed.
    const std::size_t row_bytes = std::min<std::size_t>(base_.dim() * element_size(base_.type()), 512);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t offset = 0; offset < row_bytes; offset += 64)
        __builtin_prefetch(base_.row(rows[i]) + offset);
  }
  function_({.query = query_.data(),
             .base = base_.row(first),
             .stride_bytes = base_.stride_bytes(),
             .dim = base_.dim(),
             .rows = rows,
             .count = count,
             .sums = sums,
             .norms = norms});
  for (std::size_t i = 0; i < count; ++i) {
    const double norm = metric_ == Metric::cosine ? norms[i] : 0;
    // A zero query is at distance 1 from every row; an infinite row must still be noticed.
    keys[i] = std::isfinite(norm) ? sort_key(metric_, reported(metric_, sums[i], query_norm_, norm)) : NAN;
  }
}

std::size_t CandidateTopK::capacity_for(std::size_t k, std::size_t base_width) {
  // Twice k halves the list at every clean-up; small k get enough room to make clean-ups rare.
  return k + std::max<std::size_t>(k, 192) + base_width;
}

std::size_t CandidateTopK::bytes_per_query(std::size_t k, std::size_t base_width) {
  const std::size_t stride = capacity_for(k, base_width) + store_slack;
  return stride * (sizeof(float) + sizeof(std::uint32_t)) + k * sizeof(Answer) + 2 * sizeof(std::uint32_t) +
         sizeof(float) + sizeof(double);
}

CandidateTopK::CandidateTopK(CpuStream& stream, const TopKArgs& args)
    : stream_(stream),
      query_rows_(args.query_rows),
      queries_(static_cast<const PackedRows&>(args.queries)),
      k_(args.k),
      metric_(args.metric),
      base_width_(queries_.kernel.base_width),
      capacity_(capacity_for(k_, base_width_)),
      stride_(capacity_ + store_slack),
      bound_(metric_, queries_.kernel.base_encoding, args.query_rows.dim()),
      scores_(stream.budget(), queries() * stride_),
      rows_(stream.budget(), queries() * stride_),
      counts_(stream.budget(), queries()),
      cutoffs_(stream.budget(), queries_.panel_count() * queries_.width),
      limits_(stream.budget(), queries()),
      answers_(stream.budget(), queries() * k_),
      answer_counts_(stream.budget(), queries()) {
  std::ranges::fill(counts_.span(), 0U);
  std::ranges::fill(answer_counts_.span(), 0U);
  std::ranges::fill(limits_.span(), std::numeric_limits<double>::infinity());
  std::ranges::fill(cutoffs_.span(), never);  // stays so for the empty places of the last panel
}

CandidateLists CandidateTopK::lists() {
  return {scores_.data(), rows_.data(), counts_.data(), cutoffs_.data(), stride_, capacity_};
}

bool CandidateTopK::scores_hold(std::size_t query) const {
  return ScoreBound::holds_for(queries_.lengths[query], block_);
}

void CandidateTopK::set_cutoff(std::size_t query) {
  cutoffs_[query] =
      scores_hold(query) ? bound_.cutoff(queries_.lengths[query], block_, limits_[query]) : never;
}

void CandidateTopK::begin_block(const RowsView& base, const Lengths& longest) {
  base_ = base;
  block_ = longest;
  // Blocks whose scores mean nothing put nothing into the lists.
  if (ScoreBound::holds_for({}, longest)) list_ = longer(list_, longest);
  for (std::size_t query = 0; query < queries(); ++query) set_cutoff(query);
}

void CandidateTopK::lower_limit(std::size_t query, double limit) {
  if (limit >= limits_[query]) return;
  limits_[query] = limit;
  set_cutoff(query);
}

void CandidateTopK::drop_excluded(std::size_t query) {
  float* const scores = scores_.data() + query * stride_;
  std::uint32_t* const rows = rows_.data() + query * stride_;
  const std::size_t count = counts_[query];
  const Lengths& length = queries_.lengths[query];
  if (count >= k_) lower_limit(query, bound_.limit_from_score(length, list_, kth_score(scores, count, k_)));
  const float cutoff = bound_.cutoff(length, list_, limits_[query]);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    scores[kept] = scores[i];
    rows[kept] = rows[i];
    kept += scores[i] <= cutoff ? 1 : 0;
  }
  counts_[query] = static_cast<std::uint32_t>(kept);
}

void CandidateTopK::evaluate_candidates(std::size_t query) {
  const RowEvaluator evaluator(stream_, query_rows_, query, base_, metric_);
  const std::uint32_t* const rows = rows_.data() + query * stride_;
  float keys[RowEvaluator::batch];
  for (std::size_t i = 0; i < counts_[query]; i += RowEvaluator::batch) {
    const std::size_t count = std::min(RowEvaluator::batch, counts_[query] - i);
    evaluator.evaluate(rows + i, 0, count, keys);
    for (std::size_t j = 0; j < count; ++j) offer(query, {keys[j], rows[i + j]});
  }
  counts_[query] = 0;
  if (answer_counts_[query] == k_) lower_limit(query, bound_.limit_from_key(answers_[query * k_].key));
}

void CandidateTopK::make_room(std::size_t query) {
  drop_excluded(query);
  // A list that stays more than three quarters full would be cleaned up again and again for little.
  if (counts_[query] + base_width_ > capacity_ || counts_[query] > capacity_ / 4 * 3)
    evaluate_candidates(query);
}

void CandidateTopK::evaluate_range(std::size_t query, std::size_t first, std::size_t count) {
  const RowEvaluator evaluator(stream_, query_rows_, query, base_, metric_);
  float keys[RowEvaluator::batch];
  for (std::size_t i = 0; i < count; i += RowEvaluator::batch) {
    stream_.context.cancel.check();
    const std::size_t part = std::min(RowEvaluator::batch, count - i);
    evaluator.evaluate(nullptr, first + i, part, keys);
    for (std::size_t j = 0; j < part; ++j) offer(query, {keys[j], static_cast<std::uint32_t>(first + i + j)});
  }
  if (answer_counts_[query] == k_) lower_limit(query, bound_.limit_from_key(answers_[query * k_].key));
}

std::span<const Answer> CandidateTopK::finish(std::size_t query) {
  drop_excluded(query);
  evaluate_candidates(query);
  Answer* const heap = answers_.data() + query * k_;
  std::sort_heap(heap, heap + answer_counts_[query]);
  return {heap, answer_counts_[query]};
}

std::unique_ptr<TopK> start_top_k(Stream& stream, const TopKArgs& args) {
  return std::make_unique<CandidateTopK>(cpu_stream(stream), args);
}

}  // namespace nearwise::cpu
