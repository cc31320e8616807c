// Lower bounds of distances, from f32 estimates that need no packing.
#pragma once

#include "backend/cpu/stream.h"
#include "core/memory.h"
#include "nearwise/matrix.h"

namespace nearwise::cpu {

// Estimates distances of one query, set by begin(), to batches of base vectors.
class RowEstimator {
 public:
  static constexpr std::size_t batch = 64;

  // Budgeted bytes.
  static std::size_t bytes(std::size_t dim) {
    return buffer_bytes(dim, sizeof(float)) + buffer_bytes(dim, sizeof(std::int16_t));
  }

  RowEstimator(const CpuStream& stream, const RowsView& queries, std::size_t query, const RowsView& base,
               Metric metric)
      : RowEstimator(stream, queries, base, metric) {
    begin(query);
  }
  // Requires begin() before use.
  RowEstimator(const CpuStream& stream, const RowsView& queries, const RowsView& base, Metric metric);
  void begin(std::size_t query);

  // Sums over a batch of rows, for all_exceed() and lowest().
  struct Batch {
    float sums[batch];
    float others[batch];
    std::size_t count;
  };
  void estimate(std::size_t first, std::size_t count, Batch& out) const;
  // Rows at these addresses. The caller prefetches them.
  void estimate(const std::byte* const* rows, std::size_t count, Batch& out) const;

  // Whether all values (score_bound.h) of the batch exceed `limit`. Faster but less tight than lowest().
  bool all_exceed(const Batch& estimates, double limit) const;
  // Lower bound of the row's value; -infinity if the estimate has no error bound or an element is not finite.
  double lowest(const Batch& estimates, std::size_t row) const;

 private:
  const RowsView& queries_;
  const RowsView& base_;
  const Metric metric_;
  RowEstimateKernels::Function float_function_;
  RowEstimateKernels::Function integer_function_ = nullptr;  // for queries of integers; may be null
  RowEstimateKernels::Function function_ = nullptr;          // of the current query
  Buffer<float> query_;
  Buffer<std::int16_t> integer_query_;
  double query_squares_ = 0;
  double error_;      // relative to the sum of absolute products
  double underflow_;  // absolute
};

}  // namespace nearwise::cpu
