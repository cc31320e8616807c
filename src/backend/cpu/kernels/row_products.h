// Products in f64: of vectors with the columns of a matrix, and of the columns of two matrices. Elements are
// f32, whose products are exact in f64: every target gives the same bits, with or without FMA.
#pragma once

#include <cstddef>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

// Columns are padded to a multiple of this.
inline constexpr std::size_t column_granule = 16;

struct RotateRowsArgs {
  const float* rows = nullptr;  // [count, dim]
  std::size_t dim = 0;
  std::size_t count = 0;
  const double* columns = nullptr;  // [dim, width]
  const double* offset = nullptr;   // [width] initial values of the sums
  std::size_t width = 0;            // a multiple of column_granule
  double* sums = nullptr;           // [count, width] out
};

// Columns of a block, and rows multiplied at a time.
inline constexpr std::size_t cross_columns = 32;
inline constexpr std::size_t cross_rows = 64;

struct CrossProductsBlock {
  double left[cross_rows][cross_columns];
  double right[cross_rows][cross_columns];
  double sums[cross_columns][cross_columns];
};

struct RowProductKernels {
  void (*rotate)(const RotateRowsArgs&) noexcept;
  // Adds the products of `rows` rows to the sums, in order.
  void (*cross)(CrossProductsBlock& block, std::size_t rows) noexcept;
};
const RowProductKernels& row_product_kernels(InstructionSet set);

}  // namespace nearwise::cpu
