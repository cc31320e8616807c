// f64 matrices in strips, and the product of two of them on the host: what decompositions spend their time
// on.
#pragma once

#include <cstddef>

namespace nearwise {

// An f64 matrix in strips of 32 columns: element (row, column) is at [column / 32][row][column % 32], so that
// a block of 32 x 32 elements is contiguous. Rows and columns are padded to multiples of 32.
struct StripsView {
  static constexpr std::size_t width = 32;

  double* data = nullptr;
  std::size_t row_blocks = 0;  // of width rows each

  double* block(std::size_t row_block, std::size_t strip) const {
    return data + (strip * row_blocks + row_block) * width * width;
  }
};

struct BlockRange {
  std::size_t first = 0;
  std::size_t end = 0;

  std::size_t count() const { return end - first; }
};

// sums(i, j) -= left(k, i) * right(k, j) for every k in ascending order. Products and differences are rounded
// separately: the same bits with any instruction set. A matrix may be a factor and take sums, in other
// blocks.
struct SubtractProductsArgs {
  StripsView left;
  StripsView right;
  StripsView sums;
  BlockRange terms;         // row blocks of left and right: k
  BlockRange left_strips;   // and row blocks of sums: i
  BlockRange right_strips;  // and strips of sums: j
  bool upper = false;       // leaves out the blocks of sums below the diagonal
};

}  // namespace nearwise
