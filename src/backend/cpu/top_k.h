// The running best k of every query.
#pragma once

#include "backend/cpu/candidates.h"

namespace nearwise::cpu {

class TopK : public Candidates {
 public:
  // spare: entries of a candidate list
  TopK(CpuStream& stream, const PackedRows& queries, const RowsView& query_rows, std::size_t k, Metric metric,
       std::size_t spare);

  static std::size_t bytes_per_query(std::size_t k, std::size_t base_width, std::size_t spare);

  // Twice k halves a list at every clean-up; small k get enough room to make clean-ups rare.
  static std::size_t usual_spare(std::size_t k) { return k + std::max<std::size_t>(k, 192); }

  // The k best in order, fewer if the base has fewer rows.
  std::span<const Answer> finish(std::size_t query) override;

  std::size_t k() const { return k_; }

 private:
  void offer(std::size_t query, Answer answer) override {
    offer_answer(answers_.data() + query * k_, answer_counts_[query], k_, answer);
  }
  void tighten_by_scores(std::size_t query) override;
  void tighten_by_answers(std::size_t query) override;

  const std::size_t k_;
  Buffer<Answer> answers_;               // [queries, k] heaps, the worst answer on top
  Buffer<std::uint32_t> answer_counts_;  // [queries]
};

}  // namespace nearwise::cpu
