// Reported distances of one query to base vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/stream.h"
#include "core/memory.h"
#include "nearwise/matrix.h"

namespace nearwise::cpu {

class RowEvaluator {
 public:
  static constexpr std::size_t batch = 64;  // maximum rows per call

  // Maximum budgeted bytes.
  static std::size_t bytes(std::size_t dim) { return buffer_bytes(dim, sizeof(double)); }

  RowEvaluator(const CpuStream& stream, const RowsView& queries, std::size_t query, const RowsView& base,
               Metric metric)
      : RowEvaluator(stream, queries, base, metric) {
    begin(query);
  }
  // Requires begin() before use.
  RowEvaluator(const CpuStream& stream, const RowsView& queries, const RowsView& base, Metric metric);
  void begin(std::size_t query);

  // What a later call of evaluate() reads. Scattered rows arrive together.
  void prefetch_rows(std::span<const std::uint32_t> rows) const {
    for (const std::uint32_t row : rows) prefetch_row(base_.row(row));
  }
  // Writes keys [count] of the listed rows, or of rows [first, first + count) if rows is null.
  void evaluate(const std::uint32_t* rows, std::size_t first, std::size_t count, float* keys) const;
  // Of scattered rows, of the base's type and dimension.
  void evaluate(const std::byte* const* rows, std::size_t count, float* keys) const;

 private:
  void prefetch_row(const std::byte* row) const;
  // args: the rows.
  void evaluate(RowDistanceArgs args, float* keys) const;
  const RowsView& queries_;
  const RowsView& base_;
  const Metric metric_;
  RowDistanceKernels::Function function_;
  RowDistanceKernels::Function query_function_ = nullptr;  // cosine only
  double* query() { return large_query_.size() != 0 ? large_query_.data() : small_query_; }
  const double* query() const { return large_query_.size() != 0 ? large_query_.data() : small_query_; }

  // Short queries avoid an allocation, which would take longer than evaluating a few vectors.
  static constexpr std::size_t small_dim = 512;
  double small_query_[small_dim];
  Buffer<double> large_query_;
  double query_norm_ = 0;
};

}  // namespace nearwise::cpu
