#include "backend/cpu/rows/candidates.h"

#include <algorithm>
#include <limits>

#include "backend/cpu/rows/row_estimator.h"

namespace nearwise::cpu {
namespace {

// A cutoff that no score passes. Not -infinity, which a score may overflow to.
constexpr float no_cutoff = std::numeric_limits<float>::quiet_NaN();

// Entries past a list's capacity that a vector store may overwrite: 16 floats with AVX-512.
constexpr std::size_t store_slack = 16;

}  // namespace

std::size_t Candidates::bytes_per_query(std::size_t spare, std::size_t base_width) {
  return (spare + base_width + store_slack) * (sizeof(float) + sizeof(std::uint32_t)) +
         2 * sizeof(std::uint32_t) + 3 * sizeof(float) + sizeof(double);
}

Candidates::Candidates(CpuStream& stream, const PackedRows& packed, const RowsView& query_rows, Metric metric,
                       std::size_t spare, const DeniedIds& denied)
    : stream_(stream),
      query_rows_(query_rows),
      queries_(packed),
      metric_(metric),
      base_width_(packed.kernel.base_width),
      capacity_(spare + base_width_),
      stride_(capacity_ + store_slack),
      bound_(metric, products_of(packed.kernel.base_encoding), packed.dim),
      denied_(denied),
      scores_(stream.budget(), queries() * stride_),
      rows_(stream.budget(), queries() * stride_),
      counts_(stream.budget(), queries()),
      evaluated_(stream.budget(), queries()),
      cutoffs_(stream.budget(), packed.panel_count() * packed.width),
      slack_factors_(stream.budget(), is_scaled(packed.kernel.base_encoding) ? cutoffs_.size() : 0),
      list_slack_(stream.budget(), slack_factors_.size() != 0 ? queries() : 0),
      limits_(stream.budget(), queries()) {
  std::ranges::fill(counts_.span(), 0U);
  std::ranges::fill(evaluated_.span(), 0U);
  std::ranges::fill(limits_.span(), std::numeric_limits<double>::infinity());
  std::ranges::fill(cutoffs_.span(), no_cutoff);  // final value for the padding of the last panel
  std::ranges::fill(slack_factors_.span(), 0.0F);
  std::ranges::fill(list_slack_.span(), 0.0F);
}

CandidateLists Candidates::lists() {
  return {scores_.data(), rows_.data(), counts_.data(),       cutoffs_.data(),
          stride_,        capacity_,    slack_factors_.data()};
}

bool Candidates::scores_hold(std::size_t query) const {
  return ScoreBound::holds_for(queries_.lengths[query], block_);
}

void Candidates::set_cutoff(std::size_t query) {
  cutoffs_[query] =
      scores_hold(query) ? bound_.cutoff(queries_.lengths[query], block_, limits_[query]) : no_cutoff;
  if (slack_factors_.size() == 0) return;
  slack_factors_[query] = bound_.slack_factor(queries_.lengths[query], block_, limits_[query]);
  list_slack_[query] =
      counts_[query] == 0 ? slack_factors_[query] : std::max(list_slack_[query], slack_factors_[query]);
}

void Candidates::begin_block(const RowsView& base, const Lengths& longest, const RowBits& allowed) {
  base_ = base;
  allowed_ = allowed;
  block_ = longest;
  // Blocks whose scores have no error bound add nothing to the lists.
  if (ScoreBound::holds_for({}, longest)) list_ = longer(list_, longest);
  for (std::size_t query = 0; query < queries(); ++query) set_cutoff(query);
}

void Candidates::lower_limit(std::size_t query, double limit) {
  if (limit >= limits_[query]) return;
  limits_[query] = limit;
  set_cutoff(query);
}

void Candidates::drop_denied(std::size_t query) {
  if (denied_.of(query).empty()) return;
  float* const scores = scores_.data() + query * stride_;
  std::uint32_t* const rows = rows_.data() + query * stride_;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < counts_[query]; ++i) {
    if (denied_.contains(query, rows[i])) continue;
    scores[kept] = scores[i];
    rows[kept++] = rows[i];
  }
  counts_[query] = kept;
}

void Candidates::drop_excluded(std::size_t query) {
  drop_denied(query);
  tighten_by_scores(query);
  const float cutoff = bound_.cutoff(queries_.lengths[query], list_, limits_[query]);
  counts_[query] = static_cast<std::uint32_t>(stream_.candidate_list.keep_at_most(
      scores_.data() + query * stride_, rows_.data() + query * stride_, counts_[query], cutoff));
}

void Candidates::evaluate_candidates(std::size_t query) {
  evaluate_list(query, [&](const Answer& answer) { offer(query, answer); });
  tighten_by_answers(query);
}

void Candidates::make_room(std::size_t query) {
  drop_excluded(query);
  // A list that stays more than 3/4 full would be cleaned up too often.
  if (counts_[query] + base_width_ <= capacity_ && counts_[query] <= capacity_ / 4 * 3) return;
  evaluated_[query] += counts_[query];
  evaluate_candidates(query);
}

void Candidates::evaluate_range(std::size_t query, std::size_t first, std::size_t count) {
  const RowEvaluator evaluator(stream_, query_rows_, query, base_, metric_);
  float keys[RowEvaluator::batch];
  for (std::size_t i = 0; i < count; i += RowEvaluator::batch) {
    stream_.context.cancel.check();
    const std::size_t part = std::min(RowEvaluator::batch, count - i);
    evaluator.evaluate(nullptr, first + i, part, keys);
    for (std::size_t j = 0; j < part; ++j) {
      const std::size_t row = first + i + j;
      if (allowed_.contains(row) && !denied_.contains(query, row))
        offer(query, {keys[j], static_cast<std::uint32_t>(row)});
    }
  }
  tighten_by_answers(query);
}

void Candidates::estimate_range(std::size_t query, std::size_t first, std::size_t count) {
  const RowEstimator estimator(stream_, query_rows_, query, base_, metric_);
  const RowEvaluator evaluator(stream_, query_rows_, query, base_, metric_);
  RowEstimator::Batch estimates;
  for (std::size_t i = 0; i < count; i += RowEstimator::batch) {
    stream_.context.cancel.check();
    const std::size_t part = std::min(RowEstimator::batch, count - i);
    estimator.estimate(first + i, part, estimates);
    if (estimator.all_exceed(estimates, limits_[query])) continue;
    for (std::size_t j = 0; j < part; ++j) {
      const std::size_t row = first + i + j;
      if (estimator.lowest(estimates, j) > limits_[query] || !allowed_.contains(row)) continue;
      if (denied_.contains(query, row)) continue;
      float key;
      evaluator.evaluate(nullptr, row, 1, &key);
      offer(query, {key, static_cast<std::uint32_t>(row)});
      tighten_by_answers(query);
    }
  }
}

void Candidates::take(std::size_t query, std::span<const Answer> answers) {
  for (const Answer& answer : answers) offer(query, answer);
  tighten_by_answers(query);
}

}  // namespace nearwise::cpu
