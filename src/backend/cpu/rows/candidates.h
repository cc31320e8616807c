// Candidates of every query: vectors whose score passed the cutoff of a scan.
//
// A query's list has a fixed size, so memory does not depend on the data. When it is full, vectors that the
// error bound excludes are dropped; if too few can be (near-duplicates, scores without an error bound), all
// are evaluated and offered to the subclass, which collects results. A query is used by one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "backend/cpu/rows/answers.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/math/score_bound.h"
#include "core/memory.h"

namespace nearwise::cpu {

class Candidates : public Collector {
 public:
  // spare: entries of a list in addition to one panel of base vectors.
  Candidates(CpuStream& stream, const PackedRows& queries, const RowsView& query_rows, Metric metric,
             std::size_t spare, const DeniedIds& denied);

  static std::size_t bytes_per_query(std::size_t spare, std::size_t base_width);

  // Starts a block of vectors no longer than `longest` and sets every query's cutoff for it. A scan leaves
  // out what is not allowed.
  void begin_block(const RowsView& base, const Lengths& longest, const RowBits& allowed = {});
  // Whether this query's scores have an error bound in the current block.
  bool scores_hold(std::size_t query) const;
  CandidateLists lists();

  // Drops excluded candidates or evaluates all, so that a panel of base vectors fits.
  void make_room(std::size_t query);
  // Callback of a scan.
  static void make_room_of(void* owner, std::size_t query) {
    static_cast<Candidates*>(owner)->make_room(query);
  }
  // Evaluates base rows [first, first + count) for a query that has no scores.
  void evaluate_range(std::size_t query, std::size_t first, std::size_t count);
  // Evaluates those of base rows [first, first + count) that an estimate in f32 does not exclude.
  void estimate_range(std::size_t query, std::size_t first, std::size_t count);
  // A collector of the same kind for some consecutive queries in another encoding; take() adds its results to
  // this one.
  virtual std::unique_ptr<Candidates> start_subset(const PackedRows& queries, const RowsView& query_rows,
                                                   std::size_t first_query) const = 0;
  // Evaluates a query's remaining candidates and returns its results, unordered.
  virtual std::span<const Answer> evaluate_rest(std::size_t query) = 0;
  // Adds results of another collector.
  void take(std::size_t query, std::span<const Answer> answers);

  std::size_t queries() const { return query_rows_.rows(); }
  const RowsView& query_rows() const { return query_rows_; }
  Metric metric() const { return metric_; }
  double limit(std::size_t query) const { return limits_[query]; }
  void lower_limit(std::size_t query, double limit);
  std::size_t list_capacity() const { return capacity_; }
  // Vectors evaluated so far because the list was full.
  std::uint64_t evaluated(std::size_t query) const { return evaluated_[query]; }

 protected:
  // Evaluates all candidates of a query, passes each to `take`, and empties the list.
  template <typename Take>
  void evaluate_list(std::size_t query, const Take& take);
  // Evaluates all candidates and offers them to the collector.
  void evaluate_candidates(std::size_t query);
  void drop_excluded(std::size_t query);
  std::span<const float> scores(std::size_t query) const {
    return {scores_.data() + query * stride_, counts_[query]};
  }
  double limit_from_score(std::size_t query, float score) const {
    const float slack = list_slack_.size() != 0 ? list_slack_[query] : std::numeric_limits<float>::infinity();
    return bound_.limit_from_score(queries_.lengths[query], list_, score, slack);
  }
  const ScoreBound& bound() const { return bound_; }
  CpuStream& stream() const { return stream_; }
  const DeniedIds& denied() const { return denied_; }

 private:
  virtual void offer(std::size_t query, Answer answer) = 0;
  // Lower the limit as far as the candidates' scores, or the results, allow.
  virtual void tighten_by_scores(std::size_t query) = 0;
  virtual void tighten_by_answers(std::size_t query) = 0;
  void set_cutoff(std::size_t query);
  void drop_denied(std::size_t query);

  CpuStream& stream_;
  const RowsView query_rows_;
  const PackedRows& queries_;
  const Metric metric_;
  const std::size_t base_width_;
  const std::size_t capacity_;
  const std::size_t stride_;
  const ScoreBound bound_;
  const DeniedIds denied_;
  RowBits allowed_;  // in the current block
  RowsView base_;
  Lengths block_;                    // upper bound over the current block
  Lengths list_;                     // upper bound over the candidate lists
  Buffer<float> scores_;             // [queries, stride]
  Buffer<std::uint32_t> rows_;       // [queries, stride]
  Buffer<std::uint32_t> counts_;     // [queries]
  Buffer<std::uint32_t> evaluated_;  // [queries]
  Buffer<float> cutoffs_;            // [query panels, width]
  Buffer<float> slack_factors_;      // [query panels, width] scaled products only
  Buffer<float> list_slack_;         // [queries] the largest factor that a score in the list has
  Buffer<double> limits_;            // [queries] vectors with a larger value are no results
};

template <typename Take>
void Candidates::evaluate_list(std::size_t query, const Take& take) {
  const RowEvaluator evaluator(stream_, query_rows_, query, base_, metric_);
  const std::uint32_t* const rows = rows_.data() + query * stride_;
  float keys[RowEvaluator::batch];
  for (std::size_t i = 0; i < counts_[query]; i += RowEvaluator::batch) {
    const std::size_t count = std::min(RowEvaluator::batch, counts_[query] - i);
    evaluator.evaluate(rows + i, 0, count, keys);
    for (std::size_t j = 0; j < count; ++j) take(Answer{keys[j], rows[i + j]});
  }
  counts_[query] = 0;
  if (list_slack_.size() != 0) list_slack_[query] = slack_factors_[query];
}

}  // namespace nearwise::cpu
