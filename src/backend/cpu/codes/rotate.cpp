// Vectors times a matrix, and products of the columns of two matrices: in f64, each sum in a fixed order.
#include <algorithm>
#include <cstddef>

#include "backend/cpu/kernels/row_products.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/rows_to_floats.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t task_rows = 32;

std::size_t width_of(std::size_t rotated_dim) { return round_up(rotated_dim, column_granule); }

// Columns [first, first + cross_columns) of some rows in f64, padded with zeros.
void load_block(const MatrixView<const float>& matrix, std::size_t first_row, std::size_t rows,
                std::size_t first, double (*out)[cross_columns]) {
  const std::size_t count = std::min(cross_columns, matrix.cols() - first);
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const from = matrix.row(first_row + row).data() + first;
    for (std::size_t i = 0; i < count; ++i) out[row][i] = static_cast<double>(from[i]);
    std::fill(out[row] + count, out[row] + cross_columns, 0.0);
  }
}

}  // namespace

std::uint64_t rotate_bytes(const Stream& stream, std::size_t dim, std::size_t rotated_dim) {
  const std::size_t width = width_of(rotated_dim);
  const std::uint64_t per_thread = buffer_bytes(checked_multiply(task_rows, dim, "rotate"), sizeof(float)) +
                                   buffer_bytes(checked_multiply(task_rows, width, "rotate"), sizeof(double));
  return buffer_bytes(checked_multiply(dim, width, "rotate"), sizeof(double)) +
         buffer_bytes(width, sizeof(double)) +
         static_cast<std::uint64_t>(cpu_stream(stream).threads().count()) * per_thread;
}

void rotate(Stream& stream, const RotateArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const RowProductKernels& kernels = row_product_kernels(cpu.set);
  const std::size_t dim = args.rows.dim();
  const std::size_t width = width_of(args.columns.cols());
  Buffer<double> columns(cpu.budget(), dim * width);
  Buffer<double> offset(cpu.budget(), width);
  std::fill_n(columns.data(), columns.size(), 0.0);
  std::fill_n(offset.data(), offset.size(), 0.0);
  for (std::size_t i = 0; i < dim; ++i) std::ranges::copy(args.columns.row(i), columns.data() + i * width);
  std::ranges::copy(args.offset, offset.data());
  cpu.threads().for_each(divide_up(args.rows.rows(), task_rows), [&](std::size_t task) {
    cpu.context.cancel.check();
    const std::size_t first = task * task_rows;
    const RowsView rows = args.rows.slice(first, std::min(task_rows, args.rows.rows() - first));
    Buffer<float> floats(cpu.budget(), rows.rows() * dim);
    Buffer<double> sums(cpu.budget(), rows.rows() * width);
    rows_to_floats(rows, floats.data());
    kernels.rotate({.rows = floats.data(),
                    .dim = dim,
                    .count = rows.rows(),
                    .columns = columns.data(),
                    .offset = offset.data(),
                    .width = width,
                    .sums = sums.data()});
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      const auto out = args.rotated.row(first + row);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(sums[row * width + i]);
    }
    if (args.progress != nullptr) args.progress->add(rows.rows());
  });
}

void cross_products(Stream& stream, const CrossProductsArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const RowProductKernels& kernels = row_product_kernels(cpu.set);
  const std::size_t right_blocks = divide_up(args.right.cols(), cross_columns);
  const std::size_t blocks = divide_up(args.left.cols(), cross_columns) * right_blocks;
  // A task computes a block of sums over all rows, so the order of additions does not depend on the threads.
  cpu.threads().for_each(blocks, [&](std::size_t task) {
    const std::size_t first_left = task / right_blocks * cross_columns;
    const std::size_t first_right = task % right_blocks * cross_columns;
    CrossProductsBlock block;
    std::fill(&block.sums[0][0], &block.sums[0][0] + cross_columns * cross_columns, 0.0);
    for (std::size_t row = 0; row < args.left.rows(); row += cross_rows) {
      cpu.context.cancel.check();
      const std::size_t rows = std::min(cross_rows, args.left.rows() - row);
      load_block(args.left, row, rows, first_left, block.left);
      load_block(args.right, row, rows, first_right, block.right);
      kernels.cross(block, rows);
    }
    const std::size_t count = std::min(cross_columns, args.right.cols() - first_right);
    for (std::size_t i = 0; i < std::min(cross_columns, args.left.cols() - first_left); ++i)
      std::copy_n(block.sums[i], count, &args.sums(first_left + i, first_right));
  });
}

}  // namespace nearwise::cpu
