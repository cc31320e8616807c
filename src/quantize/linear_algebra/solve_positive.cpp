#include "quantize/linear_algebra/solve_positive.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "backend/backend.h"
#include "core/check.h"
#include "core/checked.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t width = StripMatrix::width;
// Row blocks (256 rows) updated together, so that the blocks above are read once for all of them.
constexpr std::size_t panel_blocks = 8;
// Blocks solved in one task: about 0.05 ms.
constexpr std::size_t task_blocks = 4;

// In place Cholesky: a symmetric block (upper triangle read) becomes upper triangular U with U' U = block.
void factor_block(double* block) {
  for (std::size_t i = 0; i < width; ++i) {
    double* const row = block + i * width;
    if (!(row[i] > 0) || !std::isfinite(row[i]))
      fail(ErrorCode::internal, "Cholesky factorisation: the matrix is not positive definite");
    const double pivot = std::sqrt(row[i]);
    row[i] = pivot;
    for (std::size_t j = i + 1; j < width; ++j) row[j] /= pivot;
    for (std::size_t below = i + 1; below < width; ++below) {
      block[below * width + i] = 0;
      for (std::size_t j = below; j < width; ++j) block[below * width + j] -= row[below] * row[j];
    }
  }
}

void divide_row(double* row, double by) {
  for (std::size_t j = 0; j < width; ++j) row[j] /= by;
}

void subtract_row(double* row, double factor, const double* other) {
  for (std::size_t j = 0; j < width; ++j) row[j] -= factor * other[j];
}

// In place: x with U' x = block.
void solve_lower(const double* upper, double* block) {
  for (std::size_t i = 0; i < width; ++i) {
    double* const row = block + i * width;
    for (std::size_t k = 0; k < i; ++k) subtract_row(row, upper[k * width + i], block + k * width);
    divide_row(row, upper[i * width + i]);
  }
}

// In place: x with U x = block.
void solve_upper(const double* upper, double* block) {
  for (std::size_t i = width; i-- > 0;) {
    double* const row = block + i * width;
    for (std::size_t k = i + 1; k < width; ++k) subtract_row(row, upper[i * width + k], block + k * width);
    divide_row(row, upper[i * width + i]);
  }
}

void for_each_strip(const Context& context, BlockRange strips, const auto& body) {
  context.state().threads->for_each(divide_up(strips.count(), task_blocks), [&](std::size_t task) {
    const std::size_t first = strips.first + task * task_blocks;
    for (std::size_t strip = first; strip < std::min(first + task_blocks, strips.end); ++strip) body(strip);
  });
}

// The matrix becomes U with U' U = matrix, and U' below the diagonal: subtract_products reads columns, and
// solving needs U by rows, too.
void factor(const Context& context, StripMatrix& matrix) {
  const StripsView view = matrix.view();
  const std::size_t blocks = matrix.row_blocks();
  const auto subtract = [&](BlockRange terms, BlockRange rows) {
    subtract_products(context.state(), {.left = view,
                                        .right = view,
                                        .sums = view,
                                        .terms = terms,
                                        .left_strips = rows,
                                        .right_strips = {rows.first, blocks},
                                        .upper = true});
  };
  for (std::size_t panel = 0; panel < blocks; panel += panel_blocks) {
    const std::size_t end = std::min(panel + panel_blocks, blocks);
    subtract({0, panel}, {panel, end});
    for (std::size_t i = panel; i < end; ++i) {
      context.state().cancel.check();
      subtract({panel, i}, {i, i + 1});
      factor_block(matrix.block(i, i));
      for_each_strip(context, {i + 1, blocks}, [&](std::size_t strip) {
        solve_lower(matrix.block(i, i), matrix.block(i, strip));
        transpose_block(matrix.block(i, strip), matrix.block(strip, i));
      });
    }
  }
}

}  // namespace

void solve_positive(const Context& context, StripMatrix& matrix, StripMatrix& right) {
  factor(context, matrix);
  const std::size_t blocks = matrix.row_blocks();
  const BlockRange sides = {0, right.strips()};
  const auto subtract = [&](BlockRange terms, BlockRange rows) {
    subtract_products(context.state(), {.left = matrix.view(),
                                        .right = right.view(),
                                        .sums = right.view(),
                                        .terms = terms,
                                        .left_strips = rows,
                                        .right_strips = sides});
  };
  for (std::size_t panel = 0; panel < blocks; panel += panel_blocks) {
    const std::size_t end = std::min(panel + panel_blocks, blocks);
    subtract({0, panel}, {panel, end});
    for (std::size_t i = panel; i < end; ++i) {
      context.state().cancel.check();
      subtract({panel, i}, {i, i + 1});
      for_each_strip(context, sides,
                     [&](std::size_t strip) { solve_lower(matrix.block(i, i), right.block(i, strip)); });
    }
  }
  for (std::size_t panel = round_up(blocks, panel_blocks); panel > 0;) {
    const std::size_t end = std::min(panel, blocks);
    panel -= panel_blocks;
    subtract({end, blocks}, {panel, end});
    for (std::size_t i = end; i-- > panel;) {
      context.state().cancel.check();
      subtract({i + 1, end}, {i, i + 1});
      for_each_strip(context, sides,
                     [&](std::size_t strip) { solve_upper(matrix.block(i, i), right.block(i, strip)); });
    }
  }
}

}  // namespace nearwise::quantize
