// select_k on a CUDA device. Values and ids in host memory are copied in tiles that fit the memory limit:
// whole rows or, if not even one fits, column ranges of a few rows, whose best are merged with the best so
// far.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/gpu.h"
#include "backend/cuda/device/stream.h"
#include "backend/cuda/operations.h"
#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/rows/row_selection.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::gpu {
namespace {

constexpr const char* operation = "select_k";

constexpr std::size_t max_rows = std::size_t{1} << 24;    // per tile: bounded by the grid size
constexpr std::size_t max_k = max_selection_columns / 2;  // two tiles' results form a row

// Bytes to copy to the device per column.
struct CopiedColumns {
  std::size_t per_row = 0;  // values, and ids of each row
  std::size_t shared = 0;   // ids shared by all rows
};

struct Tiling {
  std::size_t rows = 0;   // of a tile
  std::size_t cols = 0;   // of a tile, at most
  std::size_t tiles = 1;  // per row

  std::size_t first_column(std::size_t tile, std::size_t all) const { return tile * all / tiles; }
};

std::size_t workspace_bytes(const Tiling& tiling, std::size_t k) {
  const std::size_t tile_bytes = RowSelection(tiling.rows, tiling.cols, k).workspace_bytes();
  if (tiling.tiles == 1) return tile_bytes;
  // Tiles differ by one column, which may change the number of parts.
  return std::max({tile_bytes, RowSelection(tiling.rows, tiling.cols - 1, k).workspace_bytes(),
                   RowSelection(tiling.rows, 2 * k, k).workspace_bytes()});
}

// If a row has several tiles, the best so far and the tile's best are adjacent, in two alternating buffers.
std::size_t results(const Tiling& tiling, std::size_t k) {
  return tiling.tiles == 1 ? tiling.rows * k : 2 * tiling.rows * 2 * k;
}

std::uint64_t bytes_of(const Tiling& tiling, std::size_t k, const CopiedColumns& copied) {
  return device_bytes(tiling.rows * tiling.cols, copied.per_row) + device_bytes(tiling.cols, copied.shared) +
         device_bytes(results(tiling, k), sizeof(float)) + device_bytes(results(tiling, k), sizeof(Id)) +
         device_bytes(workspace_bytes(tiling, k), 1) + 2 * device_bytes(1, 1);
}

// Even tiles of at most `cols` columns. If cols >= 2 k or cols is all columns, no tile is shorter than k.
Tiling cut_columns(std::size_t rows, std::size_t all_cols, std::size_t cols) {
  const std::size_t tiles = divide_up(all_cols, cols);
  return {rows, divide_up(all_cols, tiles), tiles};
}

Tiling min_tiling(const SelectKShape& shape) {
  return cut_columns(1, shape.cols, std::min(shape.cols, std::max<std::size_t>(1024, 2 * shape.k)));
}

// The largest tiles that fit into `available` bytes.
Tiling choose_tiling(const SelectKShape& shape, const CopiedColumns& copied, std::uint64_t available) {
  Tiling tiling =
      cut_columns(std::min(shape.rows, max_rows), shape.cols, std::min(shape.cols, max_selection_columns));
  const auto fits = [&] { return bytes_of(tiling, shape.k, copied) <= available; };
  while (tiling.rows > 1 && !fits()) tiling.rows = divide_up<std::size_t>(tiling.rows, 2);
  const Tiling smallest = min_tiling(shape);
  while (tiling.cols > smallest.cols && !fits())
    tiling = cut_columns(1, shape.cols, std::max(smallest.cols, divide_up<std::size_t>(tiling.cols, 2)));
  return tiling;
}

bool on_host(Place place) { return place.kind == DeviceKind::cpu; }

// One input on the device: read in place, or copied tile by tile.
template <typename T>
class TileInput {
 public:
  TileInput(const CudaStream& stream, const MatrixView<const T>& matrix, const Tiling& tiling)
      : stream_(stream), matrix_(matrix), shared_(matrix.rows() == 1) {
    if (matrix.data() != nullptr && on_host(matrix.place()))
      copy_ = DeviceBuffer<T>(stream, (shared_ ? 1 : tiling.rows) * tiling.cols, operation);
  }

  // Columns [first_col, first_col + cols) of the given rows; nullptr if this input is absent.
  const T* tile(std::size_t first_row, std::size_t rows, std::size_t first_col, std::size_t cols) {
    if (matrix_.data() == nullptr) return nullptr;
    const T* const source = matrix_.data() + (shared_ ? 0 : first_row * matrix_.stride()) + first_col;
    if (!on_host(matrix_.place())) return source;
    if (shared_ && cols == tile_cols_ && first_col == tile_first_col_) return copy_.data();
    tile_first_col_ = first_col;
    tile_cols_ = cols;
    send_rows(stream_, copy_.data(), source, matrix_.stride(), cols, shared_ ? 1 : rows, operation);
    return copy_.data();
  }

  // Elements between rows of the last tile; 0 if one row is shared by all.
  std::size_t stride() const {
    if (shared_) return 0;
    return on_host(matrix_.place()) ? tile_cols_ : matrix_.stride();
  }

 private:
  const CudaStream& stream_;
  const MatrixView<const T> matrix_;
  const bool shared_;
  DeviceBuffer<T> copy_;
  std::size_t tile_first_col_ = 0;  // of the last tile
  std::size_t tile_cols_ = 0;
};

class TiledSelection {
 public:
  TiledSelection(const CudaStream& stream, const SelectKArgs& args, const Tiling& tiling)
      : stream_(stream),
        args_(args),
        tiling_(tiling),
        values_(stream, args.values, tiling),
        narrow_(stream, args.column_ids.narrow, tiling),
        wide_(stream, args.column_ids.wide, tiling),
        best_(stream, results(tiling, args.k), operation),
        ids_(stream, results(tiling, args.k), operation),
        workspace_(stream, workspace_bytes(tiling, args.k), operation) {}
  // After an error, copies may still read memory that the caller is about to free.
  ~TiledSelection() { stream_.settle(); }
  TiledSelection(const TiledSelection&) = delete;
  TiledSelection& operator=(const TiledSelection&) = delete;

  void run() {
    for (std::size_t row = 0; row < args_.values.rows(); row += tiling_.rows) {
      const std::size_t rows = std::min(tiling_.rows, args_.values.rows() - row);
      // The best of the first tile are the best so far.
      select_tile(row, rows, 0, 0);
      for (std::size_t tile = 1; tile < tiling_.tiles; ++tile) {
        select_tile(row, rows, tile, args_.k);
        merge(rows);
      }
      copy_result(row, rows);
      if (args_.progress != nullptr) args_.progress->add(rows * args_.values.cols());
    }
  }

 private:
  std::size_t stride() const { return tiling_.tiles == 1 ? args_.k : 2 * args_.k; }
  float* best(std::size_t side) { return best_.data() + side * best_.size() / 2; }
  Id* ids(std::size_t side) { return ids_.data() + side * ids_.size() / 2; }

  Ties ties() const {
    if (args_.column_ids.wide.data() != nullptr) return Ties::wide_ids;
    return args_.column_ids.narrow.data() != nullptr ? Ties::narrow_ids : Ties::positions;
  }

  SelectionTask task(std::size_t rows, std::size_t cols) const {
    return {.rows = rows,
            .cols = static_cast<std::uint32_t>(cols),
            .k = static_cast<std::uint32_t>(args_.k),
            .sign_mask = args_.order == Order::largest ? INT32_MIN : 0,
            .best_stride = stride()};
  }

  // Writes to columns [offset, offset + k) of the current side.
  void select_tile(std::size_t first_row, std::size_t rows, std::size_t tile, std::size_t offset) {
    stream_.context.cancel.check();
    const std::size_t first = tiling_.first_column(tile, args_.values.cols());
    const std::size_t cols = tiling_.first_column(tile + 1, args_.values.cols()) - first;
    SelectionTask selection = task(rows, cols);
    selection.values = values_.tile(first_row, rows, first, cols);
    selection.value_stride = args_.values.rows() == 1 ? cols : values_.stride();
    selection.narrow_ids = narrow_.tile(first_row, rows, first, cols);
    selection.wide_ids = wide_.tile(first_row, rows, first, cols);
    selection.id_stride = selection.narrow_ids != nullptr ? narrow_.stride() : wide_.stride();
    selection.first_id = static_cast<Id>(first);
    selection.best = best(side_) + offset;
    selection.ids = ids(side_) + offset;
    RowSelection(tiling_.rows, cols, args_.k).run(stream_.handle(), ties(), selection, workspace_.data());
  }

  // Selects the best of both halves of this side into the other side. Earlier columns are in the first half,
  // so ties by position are ties by column.
  void merge(std::size_t rows) {
    SelectionTask selection = task(rows, 2 * args_.k);
    selection.values = best(side_);
    selection.value_stride = stride();
    selection.wide_ids = ids(side_);
    selection.id_stride = stride();
    side_ = 1 - side_;
    selection.best = best(side_);
    selection.ids = ids(side_);
    RowSelection(tiling_.rows, 2 * args_.k, args_.k)
        .run(stream_.handle(), ties() == Ties::positions ? Ties::positions : Ties::wide_ids, selection,
             workspace_.data());
  }

  void copy_result(std::size_t first_row, std::size_t rows) {
    copy_out(best(side_), args_.best.slice(first_row, rows));
    copy_out(ids(side_), args_.ids.slice(first_row, rows));
    stream_.synchronize(operation);
  }

  template <typename T>
  void copy_out(const T* from, const MatrixView<T>& to) {
    copy_rows(stream_.handle(), to.data(), to.stride(), from, stride(), args_.k, to.rows(), cudaMemcpyDefault,
              operation);
  }

  const CudaStream& stream_;
  const SelectKArgs& args_;
  const Tiling tiling_;
  TileInput<float> values_;
  TileInput<std::uint32_t> narrow_;
  TileInput<Id> wide_;
  DeviceBuffer<float> best_;
  DeviceBuffer<Id> ids_;
  DeviceBuffer<std::byte> workspace_;
  std::size_t side_ = 0;
};

CopiedColumns copied_columns(const SelectKArgs& args) {
  CopiedColumns copied;
  if (on_host(args.values.place())) copied.per_row += sizeof(float);
  const auto add = [&]<typename T>(const MatrixView<const T>& ids) {
    if (ids.data() != nullptr && on_host(ids.place()))
      (ids.rows() == 1 ? copied.shared : copied.per_row) += sizeof(T);
  };
  add(args.column_ids.narrow);
  add(args.column_ids.wide);
  return copied;
}

}  // namespace

// For host inputs with 64-bit ids per row, the largest case.
std::uint64_t select_k_bytes(const Stream&, const SelectKShape& shape) {
  return bytes_of(min_tiling(shape), shape.k, {.per_row = sizeof(float) + sizeof(Id)});
}

void select_k(Stream& stream, const SelectKArgs& args) {
  if (args.k > max_k)
    fail(ErrorCode::unsupported, "select_k: k on a CUDA device must be at most {}, got {}", max_k, args.k);
  const CudaStream& cuda = cuda_stream(stream);
  const DeviceScope scope(cuda.ordinal());
  const SelectKShape shape = {args.values.rows(), args.values.cols(), args.k};
  const CopiedColumns copied = copied_columns(args);
  const std::uint64_t smallest = bytes_of(min_tiling(shape), args.k, copied);
  std::optional<TiledSelection> selection;
  for (std::uint64_t available = cuda.budget().available(); !selection;) {
    const Tiling tiling = choose_tiling(shape, copied, available);
    const std::uint64_t bytes = bytes_of(tiling, args.k, copied);
    try {
      selection.emplace(cuda, args, tiling);
    } catch (const Error& error) {
      // The device has less memory than the limit allows: use smaller tiles.
      if (error.code() != ErrorCode::out_of_memory || bytes <= smallest) throw;
      available = std::max(smallest, bytes / 2);
    }
  }
  selection->run();
}

}  // namespace nearwise::gpu
