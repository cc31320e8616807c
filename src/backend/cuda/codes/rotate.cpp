// Rows times a matrix, and products of the columns of two matrices: in f64, each sum in a fixed order.
#include <algorithm>
#include <memory>

#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/working_memory.h"
#include "backend/cuda/kernels/rows/row_products.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/rows/row_tiles.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr const char* rotate_name = "rotate";
constexpr const char* cross_name = "cross_products";

struct RotationTiles {
  RotationTiles(const CudaStream& stream, const RotateArgs& args, std::size_t tile_rows)
      : columns(stream, args.columns.rows() * args.columns.cols(), rotate_name),
        offset(stream, args.offset.size(), rotate_name),
        tiles(stream, args.rows, tile_rows, rotate_name),
        rotated(stream, tile_rows * args.columns.cols(), rotate_name) {
    copy_rows_to_device(stream, RowsView(args.columns), reinterpret_cast<std::byte*>(columns.data()));
    copy_to_device(stream, args.offset, offset.data(), rotate_name);
  }
  static std::uint64_t bytes(std::size_t dim, std::size_t element_bytes, std::size_t rotated_dim,
                             std::size_t tile_rows) {
    return device_bytes(checked_multiply(dim, rotated_dim, rotate_name), sizeof(float)) +
           device_bytes(rotated_dim, sizeof(double)) + RowTiles::bytes(dim, element_bytes, tile_rows) +
           device_bytes(tile_rows * rotated_dim, sizeof(float));
  }

  DeviceBuffer<float> columns;  // [dim, rotated dim]
  DeviceBuffer<double> offset;  // [rotated dim]
  RowTiles tiles;
  DeviceBuffer<float> rotated;  // [tile rows, rotated dim]
};

// Rows, and columns of the left matrix, per tile.
struct CrossTile {
  std::size_t rows = 0;
  std::size_t left = 0;
};

std::uint64_t bytes_of(const CrossTile& tile, std::size_t right) {
  return device_bytes(tile.rows * tile.left, sizeof(float)) + device_bytes(tile.rows * right, sizeof(float)) +
         device_bytes(checked_multiply(tile.left, right, cross_name), sizeof(double));
}

struct CrossBuffers {
  CrossBuffers(const CudaStream& stream, const CrossTile& chosen, std::size_t right_columns)
      : tile(chosen),
        left(stream, tile.rows * tile.left, cross_name),
        right(stream, tile.rows * right_columns, cross_name),
        sums(stream, tile.left * right_columns, cross_name) {}

  CrossTile tile;
  DeviceBuffer<float> left;
  DeviceBuffer<float> right;
  DeviceBuffer<double> sums;
};

// Columns [first, first + count) of the left matrix.
void cross_columns(const CudaStream& stream, const CrossProductsArgs& args, CrossBuffers& buffers,
                   std::size_t first, std::size_t count) {
  const std::size_t width = args.right.cols();
  const MatrixView<const float> left(args.left.data() + first, args.left.rows(), count, args.left.stride(),
                                     args.left.place());
  check(cudaMemsetAsync(buffers.sums.data(), 0, count * width * sizeof(double), stream.handle()), cross_name);
  for (std::size_t row = 0; row < left.rows(); row += buffers.tile.rows) {
    stream.context.cancel.check();
    const std::size_t rows = std::min(buffers.tile.rows, left.rows() - row);
    const auto load = [&](const MatrixView<const float>& from, DeviceBuffer<float>& to) {
      copy_rows_to_device(stream, RowsView(from).slice(row, rows), reinterpret_cast<std::byte*>(to.data()));
    };
    load(left, buffers.left);
    load(args.right, buffers.right);
    launch_cross_products(stream.handle(), {.left = buffers.left.data(),
                                            .left_columns = static_cast<std::uint32_t>(count),
                                            .right = buffers.right.data(),
                                            .right_columns = static_cast<std::uint32_t>(width),
                                            .count = static_cast<std::uint32_t>(rows),
                                            .sums = buffers.sums.data()});
  }
  copy_rows(stream.handle(), args.sums.row(first).data(), args.sums.stride(), buffers.sums.data(), width,
            width, count, cudaMemcpyDeviceToHost, cross_name);
  stream.synchronize(cross_name);
}

}  // namespace

std::uint64_t rotate_bytes(const Stream&, std::size_t dim, std::size_t rotated_dim) {
  return RotationTiles::bytes(dim, sizeof(float), rotated_dim, tuning::min_coded_rows);
}

void rotate(Stream& stream, const RotateArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const std::size_t rows = args.rows.rows();
  if (rows == 0) return;
  const std::size_t width = args.columns.cols();
  const auto bytes = [&](std::size_t tile_rows) {
    return RotationTiles::bytes(args.rows.dim(), element_size(args.rows.type()), width, tile_rows);
  };
  const auto rotation =
      with_working_memory(cuda, bytes(1), tuning::target_working_bytes, 0, [&](std::uint64_t available) {
        return std::make_unique<RotationTiles>(cuda, args, choose_tile_rows(rows, available, bytes));
      });
  for (std::size_t first = 0; first < rows; first += rotation->tiles.tile_rows()) {
    cuda.context.cancel.check();
    const std::size_t count = std::min(rotation->tiles.tile_rows(), rows - first);
    launch_rotate_rows(cuda.handle(), {.rows = rotation->tiles.load(first, count),
                                       .count = static_cast<std::uint32_t>(count),
                                       .dim = static_cast<std::uint32_t>(args.rows.dim()),
                                       .columns = rotation->columns.data(),
                                       .offset = rotation->offset.data(),
                                       .width = static_cast<std::uint32_t>(width),
                                       .rotated = rotation->rotated.data(),
                                       .rotated_stride = width});
    copy_rows(cuda.handle(), args.rotated.row(first).data(), args.rotated.stride(), rotation->rotated.data(),
              width, width, count, cudaMemcpyDeviceToHost, rotate_name);
    cuda.synchronize(rotate_name);
    if (args.progress != nullptr) args.progress->add(count);
  }
}

void cross_products(Stream& stream, const CrossProductsArgs& args) {
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const std::size_t right = args.right.cols();
  const auto buffers = with_working_memory(
      cuda, bytes_of({1, 1}, right), tuning::target_working_bytes, 0, [&](std::uint64_t bytes) {
        CrossTile tile = {std::clamp<std::size_t>(args.left.rows(), 1, tuning::max_coded_rows),
                          args.left.cols()};
        while (tile.rows > tuning::min_coded_rows && bytes_of(tile, right) > bytes) tile.rows /= 2;
        while (tile.left > 1 && bytes_of(tile, right) > bytes)
          tile.left = divide_up<std::size_t>(tile.left, 2);
        while (tile.rows > 1 && bytes_of(tile, right) > bytes) tile.rows /= 2;
        return std::make_unique<CrossBuffers>(cuda, tile, right);
      });
  for (std::size_t first = 0; first < args.left.cols(); first += buffers->tile.left)
    cross_columns(cuda, args, *buffers, first, std::min(buffers->tile.left, args.left.cols() - first));
}

}  // namespace nearwise::gpu
