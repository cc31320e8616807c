// All vectors within a radius of every query.
#pragma once

#include <vector>

#include "backend/cpu/rows/candidates.h"

namespace nearwise::cpu {

class WithinRadius : public Candidates {
 public:
  WithinRadius(CpuStream& stream, const PackedRows& queries, const RowsView& query_rows, float radius,
               Metric metric, const DeniedIds& denied);
  ~WithinRadius() override;

  static std::size_t bytes_per_query(std::size_t base_width);

  std::unique_ptr<Candidates> start_subset(const PackedRows& queries, const RowsView& query_rows,
                                           std::size_t first_query) const override;
  std::span<const Answer> evaluate_rest(std::size_t query) override;
  // Results of a query in order. Ends the query.
  std::span<const Answer> finish(std::size_t query);

 private:
  // Results are charged to the budget as they grow, since their number is not known in advance.
  void offer(std::size_t query, Answer answer) override;
  void tighten_by_scores(std::size_t) override {}
  void tighten_by_answers(std::size_t) override {}

  MemoryBudget& budget_;
  const float radius_key_;
  std::vector<std::vector<Answer>> answers_;  // [queries]
};

}  // namespace nearwise::cpu
