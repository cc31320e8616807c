// An f64 matrix in the layout of subtract_products (backend/strips.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "core/checked.h"
#include "core/memory.h"

namespace nearwise::quantize {

class StripMatrix {
 public:
  static constexpr std::size_t width = StripsView::width;

  // Uninitialised, padding included.
  StripMatrix(MemoryBudget& budget, std::size_t rows, std::size_t cols)
      : row_blocks_(divide_up(rows, width)),
        strips_(divide_up(cols, width)),
        elements_(budget, elements(rows, cols)) {}
  static std::uint64_t bytes(std::size_t rows, std::size_t cols) {
    return buffer_bytes(elements(rows, cols), sizeof(double));
  }

  void clear(std::size_t strip) { std::fill_n(block(0, strip), row_blocks_ * width * width, 0.0); }

  double& operator()(std::size_t row, std::size_t col) {
    return elements_[(col / width * row_blocks_ * width + row) * width + col % width];
  }
  double* block(std::size_t row_block, std::size_t strip) { return view().block(row_block, strip); }
  StripsView view() { return {elements_.data(), row_blocks_}; }

  std::size_t row_blocks() const { return row_blocks_; }
  std::size_t strips() const { return strips_; }

 private:
  static std::size_t elements(std::size_t rows, std::size_t cols) {
    return checked_multiply(round_up(rows, width), round_up(cols, width), "matrix");
  }

  std::size_t row_blocks_;
  std::size_t strips_;
  Buffer<double> elements_;
};

// to = transposed from, both [width, width].
inline void transpose_block(const double* from, double* to) {
  for (std::size_t i = 0; i < StripMatrix::width; ++i)
    for (std::size_t j = 0; j < StripMatrix::width; ++j)
      to[j * StripMatrix::width + i] = from[i * StripMatrix::width + j];
}

}  // namespace nearwise::quantize
