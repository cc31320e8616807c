#include "quantize/rotation/rotating.h"

#include <algorithm>

#include "backend/dispatch.h"
#include "core/checked.h"

namespace nearwise::quantize {
namespace {

// Operands of the forward rotation: one axis per column, and the rotated mean as offset.
void fill_forward(const AxesView& axes, float* columns, double* offset) {
  const std::size_t count = axes.matrix.rows();
  for (std::size_t axis = 0; axis < count; ++axis) {
    const std::span<const float> elements = axes.matrix.row(axis);
    double along = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      columns[i * count + axis] = elements[i];
      along += static_cast<double>(elements[i]) * static_cast<double>(axes.mean[i]);
    }
    offset[axis] = -along;
  }
}

}  // namespace

std::uint64_t rotate_bytes(const char* operation, const Context& context, const AxesView& axes,
                           Direction direction) {
  const std::size_t after = axes.dim_after(direction);
  const auto stream = open_stream(context);
  const std::uint64_t transposed = direction == Direction::forward
                                       ? buffer_bytes(axes.matrix.rows() * axes.matrix.cols(), sizeof(float))
                                       : 0;
  return transposed + buffer_bytes(after, sizeof(double)) +
         dispatch(&Ops::rotate_bytes, operation, *stream, axes.dim_before(direction), after);
}

void rotate_rows(const char* operation, const Context& context, const RowsView& rows, const AxesView& axes,
                 Direction direction, const MatrixView<float>& rotated, ProgressMeter* progress) {
  MemoryBudget& budget = *context.state().budget;
  Buffer<double> offset(budget, axes.dim_after(direction));
  Buffer<float> transposed;
  MatrixView<const float> columns = axes.matrix;
  if (direction == Direction::forward) {
    transposed = Buffer<float>(budget, axes.matrix.rows() * axes.matrix.cols());
    fill_forward(axes, transposed.data(), offset.data());
    columns = {transposed.data(), axes.matrix.cols(), axes.matrix.rows()};
  } else {
    std::ranges::copy(axes.mean, offset.data());
  }
  const auto stream = open_stream(context);
  dispatch(&Ops::rotate, operation, *stream,
           RotateArgs{.rows = rows,
                      .columns = columns,
                      .offset = offset.span(),
                      .rotated = rotated,
                      .progress = progress});
}

}  // namespace nearwise::quantize
