// The running best k of every query: candidates by score, and the exactly evaluated ones among them.
//
// Two stages per query. `candidates` hold rows whose score passed the cutoff; when they fill up, those that the bound
// excludes are dropped. If too few can be dropped (near-duplicates, scores without meaning) all are evaluated exactly
// and the k best kept, so memory is fixed whatever the data. A query belongs to one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/prepared_rows.h"
#include "backend/cpu/score_bound.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

// Order of answers: by key, then by row. Keys are sort_key() of the reported distance.
struct Answer {
  float key;
  std::uint32_t row;
  friend bool operator<(const Answer& left, const Answer& right) {
    return left.key < right.key || (left.key == right.key && left.row < right.row);
  }
};

// Keeps the k best answers in `heap` [k], the worst on top.
template <typename Count>
void offer_answer(Answer* heap, Count& count, std::size_t k, Answer answer) {
  if (count < k) {
    heap[count++] = answer;
    std::push_heap(heap, heap + count);
  } else if (answer < heap[0]) {
    std::pop_heap(heap, heap + k);
    heap[k - 1] = answer;
    std::push_heap(heap, heap + k);
  }
}

// One result row, padded where there are fewer than k answers.
void write_answers(std::span<const Answer> answers, Metric metric, Id id_offset, std::span<Id> ids,
                   std::span<float> distances);

// Exact distances of one query to rows of the base, at most `batch` at a time.
class RowEvaluator {
 public:
  static constexpr std::size_t batch = 64;

  // Bytes on the budget while one lives.
  static std::size_t bytes(std::size_t dim) { return buffer_bytes(dim, sizeof(double)); }

  RowEvaluator(const CpuStream& stream, const RowsView& queries, std::size_t query, const RowsView& base,
               Metric metric);
  // keys [count] of the rows listed (or first + 0 ... if rows is null).
  void evaluate(const std::uint32_t* rows, std::size_t first, std::size_t count, float* keys) const;

 private:
  const RowsView& base_;
  const Metric metric_;
  RowDistanceKernels::Function function_;
  Buffer<double> query_;
  double query_norm_ = 0;
};

class CandidateTopK : public TopK {
 public:
  CandidateTopK(CpuStream& stream, const TopKArgs& args);

  static std::size_t bytes_per_query(std::size_t k, std::size_t base_width);

  // Announces a block whose rows are at most this long; sets every query's cutoff for it.
  void begin_block(const RowsView& base, const Lengths& longest);
  // Whether scores of this query mean anything in the current block.
  bool scores_hold(std::size_t query) const;
  CandidateLists lists();

  // Drops what the bound excludes, or evaluates: afterwards there is room for a tile.
  void make_room(std::size_t query);
  // Evaluates rows [first, first + count) of the base for a query, without scores.
  void evaluate_range(std::size_t query, std::size_t first, std::size_t count);
  // The k best of a query in order (fewer if the base has fewer rows). Ends the query.
  std::span<const Answer> finish(std::size_t query);

  std::size_t queries() const { return query_rows_.rows(); }
  std::size_t k() const { return k_; }
  Metric metric() const { return metric_; }

 private:
  static std::size_t capacity_for(std::size_t k, std::size_t base_width);
  void drop_excluded(std::size_t query);
  void evaluate_candidates(std::size_t query);
  void offer(std::size_t query, Answer answer) {
    offer_answer(answers_.data() + query * k_, answer_counts_[query], k_, answer);
  }
  void lower_limit(std::size_t query, double limit);
  void set_cutoff(std::size_t query);

  const CpuStream& stream_;
  const RowsView query_rows_;
  const PackedRows& queries_;
  const std::size_t k_;
  const Metric metric_;
  const std::size_t base_width_;
  const std::size_t capacity_;
  const std::size_t stride_;
  const ScoreBound bound_;
  RowsView base_;
  Lengths block_;                        // the longest row of the block being scanned
  Lengths list_;                         // the longest row that may stand in a candidate list
  Buffer<float> scores_;                 // [queries, stride]
  Buffer<std::uint32_t> rows_;           // [queries, stride]
  Buffer<std::uint32_t> counts_;         // [queries]
  Buffer<float> cutoffs_;                // [queries]
  Buffer<double> limits_;                // [queries] no row above it can be among the k best
  Buffer<Answer> answers_;               // [queries, k] heaps, the worst answer on top
  Buffer<std::uint32_t> answer_counts_;  // [queries]
};

}  // namespace nearwise::cpu
