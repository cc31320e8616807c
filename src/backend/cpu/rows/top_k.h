// Running top k of every query.
#pragma once

#include <vector>

#include "backend/cpu/kernels/key_sorter.h"
#include "backend/cpu/rows/candidates.h"

namespace nearwise::cpu {

// Vectorized sort of results. Not thread-safe.
class AnswerSorter {
 public:
  AnswerSorter(MemoryBudget& budget, std::size_t most) : keys_(budget, most) {}

  void clear() {
    count_ = 0;
    negative_zeros_.clear();
  }
  void add(const Answer& answer);
  // Writes the k best in order.
  void sort_into(Answer* answers, std::size_t k);

 private:
  KeySorter sorter_;
  Buffer<std::int64_t> keys_;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> negative_zeros_;  // rows with key -0, which sorts like +0 but is reported as -0
};

class TopK : public Candidates {
 public:
  // spare: as in Candidates.
  TopK(CpuStream& stream, const PackedRows& queries, const RowsView& query_rows, std::size_t k, Metric metric,
       std::size_t spare, const DeniedIds& denied = {});

  static std::size_t bytes_per_query(std::size_t k, std::size_t base_width, std::size_t spare);

  // With 2 k entries a clean-up halves the list; small k get at least 48 more to make clean-ups rare. Every
  // entry costs as much as scanning hundreds of vectors. For k = 1, 8 are enough: the cutoff falls quickly.
  static std::size_t default_spare(std::size_t k) { return k == 1 ? 8 : k + std::max<std::size_t>(k, 48); }

  // The k best of a query in order, or fewer if the base is smaller. Ends the query.
  std::span<const Answer> finish(std::size_t query, AnswerSorter& sorter);

  // Capacity of a thread's sorter.
  std::size_t sorter_size() const { return list_capacity(); }

  std::unique_ptr<Candidates> start_subset(const PackedRows& queries, const RowsView& query_rows,
                                           std::size_t first_query) const override;
  std::span<const Answer> evaluate_rest(std::size_t query) override;

 private:
  void offer(std::size_t query, Answer answer) override {
    offer_answer(answers_.data() + query * k_, answer_counts_[query], k_, answer);
  }
  void tighten_by_scores(std::size_t query) override;
  void tighten_by_answers(std::size_t query) override;

  const std::size_t k_;
  Buffer<Answer> answers_;               // [queries, k] heaps, worst on top
  Buffer<std::uint32_t> answer_counts_;  // [queries]
};

}  // namespace nearwise::cpu
