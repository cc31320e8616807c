// Rows packed for the scan: panels of f32, their lengths, and for base rows the bias of their scores.
#pragma once

#include <cstddef>

#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

class PackedRows : public PreparedRows {
 public:
  PackedRows(MemoryBudget& budget, std::size_t row_count, std::size_t row_dim, std::size_t width,
             RowsRole role);

  // Bytes on the budget per row of a large batch.
  static std::size_t bytes_per_row(std::size_t dim, RowsRole role);
  // What each thread needs beside that while rows are packed.
  static std::size_t scratch_bytes(std::size_t dim, std::size_t width);

  std::size_t panel_count() const { return panel_count_; }
  float* panel(std::size_t index) { return panels.data() + index * dim * width; }
  const float* panel(std::size_t index) const { return panels.data() + index * dim * width; }

  const std::size_t rows;
  const std::size_t dim;
  const std::size_t width;  // rows per panel

 private:
  const std::size_t panel_count_;

 public:
  Buffer<float> panels;  // [panels, dim, width]
  Buffer<float> biases;  // [panels, width] base only: score = bias - product
  Buffer<double> norms;  // [panels * width] queries only: length of the packed vector
  double largest_norm = 0;
};

}  // namespace nearwise::cpu
