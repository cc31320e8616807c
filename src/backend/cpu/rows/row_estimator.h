// What an estimated distance proves: a lower bound on the value of a row, without packing or preparing anything.
#pragma once

#include "backend/cpu/stream.h"
#include "core/memory.h"
#include "nearwise/matrix.h"

namespace nearwise::cpu {

// Estimates of one query's distances to rows of the base, a few at a time; of several queries in turn, if they are begun.
class RowEstimator {
 public:
  static constexpr std::size_t batch = 64;

  // Bytes on the budget while one lives.
  static std::size_t bytes(std::size_t dim) {
    return buffer_bytes(dim, sizeof(float)) + buffer_bytes(dim, sizeof(std::int16_t));
  }

  RowEstimator(const CpuStream& stream, const RowsView& queries, std::size_t query, const RowsView& base,
               Metric metric)
      : RowEstimator(stream, queries, base, metric) {
    begin(query);
  }
  // For any of the queries, to be begun.
  RowEstimator(const CpuStream& stream, const RowsView& queries, const RowsView& base, Metric metric);
  void begin(std::size_t query);

  // Sums over rows [first, first + count) for the two functions below.
  struct Batch {
    float sums[batch];
    float others[batch];
    std::size_t count;
  };
  void estimate(std::size_t first, std::size_t count, Batch& out) const;
  // The same over rows that lie anywhere; whoever knows them early asks for their memory.
  void estimate(const std::uint32_t* rows, std::size_t count, Batch& out) const;

  // Whether no row of the batch can have a value (score_bound.h) up to `limit`. May say no where lowest() knows better.
  bool all_exceed(const Batch& estimates, double limit) const;
  // The row's value is not below it; -infinity where the estimate proves nothing, and for a row with an element that is
  // not finite.
  double lowest(const Batch& estimates, std::size_t row) const;

 private:
  const RowsView& queries_;
  const RowsView& base_;
  const Metric metric_;
  RowEstimateKernels::Function float_function_;
  RowEstimateKernels::Function integer_function_ =
      nullptr;                                       // for queries of whole numbers; null: there is none
  RowEstimateKernels::Function function_ = nullptr;  // of the query at hand
  Buffer<float> query_;
  Buffer<std::int16_t> integer_query_;
  double query_squares_ = 0;
  double error_;      // relative to the sum of the absolute products
  double underflow_;  // absolute
};

}  // namespace nearwise::cpu
