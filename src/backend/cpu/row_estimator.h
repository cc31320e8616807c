// What an estimated distance proves: a lower bound on the value of a row, without packing or preparing anything.
#pragma once

#include "backend/cpu/stream.h"
#include "core/memory.h"
#include "nearwise/matrix.h"

namespace nearwise::cpu {

// Estimates of one query's distances to rows of the base, a few at a time.
class RowEstimator {
 public:
  static constexpr std::size_t batch = 64;

  // Bytes on the budget while one lives.
  static std::size_t bytes(std::size_t dim) { return buffer_bytes(dim, sizeof(float)); }

  RowEstimator(const CpuStream& stream, const RowsView& queries, std::size_t query, const RowsView& base,
               Metric metric);

  // lowest [count]: no row's value (score_bound.h) is below it; -infinity where the estimate proves nothing, and for
  // every row with an element that is not finite.
  void estimate(std::size_t first, std::size_t count, double* lowest) const;

 private:
  const RowsView& base_;
  const Metric metric_;
  RowEstimateKernels::Function function_;
  Buffer<float> query_;
  double query_squares_ = 0;
  double error_;      // relative to the sum of the absolute products
  double underflow_;  // absolute
};

}  // namespace nearwise::cpu
