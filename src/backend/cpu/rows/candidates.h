// What a scan leaves over for every query: rows whose score passed the cutoff, and what becomes of them.
//
// A query's list has a fixed size, so memory does not depend on the data. When it is full, rows that the bound excludes
// are dropped; if too few can be (near-duplicates, scores without meaning), all are evaluated exactly and offered to
// whoever collects answers. A query belongs to one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/cpu/rows/answers.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/memory.h"
#include "core/score_bound.h"

namespace nearwise::cpu {

class Candidates : public Collector {
 public:
  // spare: entries of a list beyond those of one panel of base rows.
  Candidates(CpuStream& stream, const PackedRows& queries, const RowsView& query_rows, Metric metric,
             std::size_t spare);

  static std::size_t bytes_per_query(std::size_t spare, std::size_t base_width);

  // Announces a block whose rows are at most this long; sets every query's cutoff for it.
  void begin_block(const RowsView& base, const Lengths& longest);
  // Whether scores of this query mean anything in the current block.
  bool scores_hold(std::size_t query) const;
  CandidateLists lists();

  // Drops what the bound excludes, or evaluates: afterwards there is room for a panel of base rows.
  void make_room(std::size_t query);
  // The same as a callback of a scan.
  static void make_room_of(void* owner, std::size_t query) {
    static_cast<Candidates*>(owner)->make_room(query);
  }
  // Evaluates rows [first, first + count) of the base for a query, without scores.
  void evaluate_range(std::size_t query, std::size_t first, std::size_t count);
  // A collection of the same kind for some of the queries in another form; its answers are taken over with take().
  virtual std::unique_ptr<Candidates> start_again(const PackedRows& queries,
                                                  const RowsView& query_rows) const = 0;
  // Evaluates what is left of a query's candidates and returns its answers, in no order.
  virtual std::span<const Answer> evaluate_rest(std::size_t query) = 0;
  // Answers that were evaluated elsewhere.
  void take(std::size_t query, std::span<const Answer> answers);

  std::size_t queries() const { return query_rows_.rows(); }
  const RowsView& query_rows() const { return query_rows_; }
  Metric metric() const { return metric_; }
  double limit(std::size_t query) const { return limits_[query]; }
  void lower_limit(std::size_t query, double limit);
  // Rows evaluated so far because a list was full.
  std::uint64_t evaluated(std::size_t query) const { return evaluated_[query]; }

 protected:
  // Evaluates all candidates of a query and empties its list. `take` gets each as an Answer.
  template <typename Take>
  void evaluate_list(std::size_t query, const Take& take);
  // The same, offered to the collection.
  void evaluate_candidates(std::size_t query);
  void drop_excluded(std::size_t query);
  std::span<const float> scores(std::size_t query) const {
    return {scores_.data() + query * stride_, counts_[query]};
  }
  double limit_from_score(std::size_t query, float score) const {
    return bound_.limit_from_score(queries_.lengths[query], list_, score);
  }
  const ScoreBound& bound() const { return bound_; }
  CpuStream& stream() const { return stream_; }
  std::size_t list_capacity() const { return capacity_; }

 private:
  virtual void offer(std::size_t query, Answer answer) = 0;
  // Lowers the limit as far as the candidates' scores, or the answers, prove it.
  virtual void tighten_by_scores(std::size_t query) = 0;
  virtual void tighten_by_answers(std::size_t query) = 0;
  void set_cutoff(std::size_t query);

  CpuStream& stream_;
  const RowsView query_rows_;
  const PackedRows& queries_;
  const Metric metric_;
  const std::size_t base_width_;
  const std::size_t capacity_;
  const std::size_t stride_;
  const ScoreBound bound_;
  RowsView base_;
  Lengths block_;                    // the longest row of the block being scanned
  Lengths list_;                     // the longest row that may stand in a candidate list
  Buffer<float> scores_;             // [queries, stride]
  Buffer<std::uint32_t> rows_;       // [queries, stride]
  Buffer<std::uint32_t> counts_;     // [queries]
  Buffer<std::uint32_t> evaluated_;  // [queries]
  Buffer<float> cutoffs_;            // [query panels, width]
  Buffer<double> limits_;            // [queries] a row whose value exceeds it is no answer
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
}

}  // namespace nearwise::cpu
