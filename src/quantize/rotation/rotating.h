// Rotates rows without argument checks, reporting the caller's progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

enum class Direction : std::uint8_t {
  forward,   // x -> matrix * (x - mean)
  backward,  // y -> transposed matrix * y + mean
};

// Axes as the rows of a matrix, and the mean of the rows.
struct AxesView {
  MatrixView<const float> matrix;
  std::span<const float> mean;

  std::size_t dim_before(Direction direction) const {
    return direction == Direction::forward ? matrix.cols() : matrix.rows();
  }
  std::size_t dim_after(Direction direction) const {
    return direction == Direction::forward ? matrix.rows() : matrix.cols();
  }
};

// Bytes on the budget.
std::uint64_t rotate_bytes(const char* operation, const Context& context, const AxesView& axes,
                           Direction direction);

// `operation`: the caller's name in messages. progress counts rows and may be null. Rows are finite.
void rotate_rows(const char* operation, const Context& context, const RowsView& rows, const AxesView& axes,
                 Direction direction, const MatrixView<float>& rotated, ProgressMeter* progress);

}  // namespace nearwise::quantize
