// Rows packed for a scan: panels, what is known of every row, and for base rows the bias of their scores.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/score_bound.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

class PackedRows : public PreparedRows {
 public:
  PackedRows(MemoryBudget& budget, const ScanKernel& kernel, RowsRole role, std::size_t row_count,
             std::size_t row_dim);

  // Bytes on the budget per row of a large batch.
  static std::size_t bytes_per_row(const ScanKernel& kernel, RowsRole role, std::size_t dim);
  // What each thread needs beside that while rows are packed.
  static std::size_t scratch_bytes(const ScanKernel& kernel, std::size_t dim);

  std::size_t panel_count() const { return panel_count_; }
  std::byte* panel(std::size_t index) { return panels_.data() + index * panel_bytes(); }
  const std::byte* panel(std::size_t index) const { return panels_.data() + index * panel_bytes(); }
  std::size_t panel_bytes() const { return row_bytes * width; }

  const ScanKernel kernel;
  const RowsRole role;
  const std::size_t rows;
  const std::size_t dim;
  const std::size_t width;      // rows per panel
  const std::size_t row_bytes;  // of an encoded row

 private:
  const std::size_t panel_count_;
  Buffer<std::byte> panels_;  // [panels, width * row_bytes]

 public:
  // [panels, width] base only, of floating or of integer products (ScanArgs)
  Buffer<float> biases;
  Buffer<std::int32_t> integer_biases;
  Buffer<std::int32_t> half_biases;  // integer biases halved and rounded down
  Buffer<Lengths> lengths;           // [rows] queries only
  Lengths longest;                   // the largest of both lengths over all rows
};

}  // namespace nearwise::cpu
