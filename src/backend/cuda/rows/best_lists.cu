#include "backend/cuda/rows/best_lists.h"

#include <algorithm>

#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/rows/row_selection.h"

namespace nearwise::gpu {
namespace {

// A tile's best beside the best so far, and what selection needs.
struct Layout {
  Layout(std::size_t queries, std::size_t rows, std::size_t length)
      : taken(std::min(rows, length)),
        stride(length + taken),
        ids_offset(device_bytes(queries * stride, sizeof(float))),
        selection_offset(ids_offset + device_bytes(queries * stride, sizeof(Id))),
        of_tile(queries, rows, taken),
        joining(queries, stride, length),
        bytes(selection_offset +
              device_bytes(std::max(of_tile.workspace_bytes(), joining.workspace_bytes()), 1)) {}

  std::size_t taken;   // from the tile
  std::size_t stride;  // of both, side by side
  std::size_t ids_offset;
  std::size_t selection_offset;
  RowSelection of_tile;
  RowSelection joining;
  std::size_t bytes;
};

}  // namespace

BestLists::BestLists(const CudaStream& stream, std::size_t queries, std::size_t length, const char* operation)
    : length_(length),
      operation_(operation),
      values_(stream, queries * length, operation),
      rows_(stream, queries * length, operation) {
  clear(stream);
}

void BestLists::clear(const CudaStream& stream) {
  static_assert(no_id == -1);
  check(cudaMemsetAsync(values_.data(), 0xFF, values_.size() * sizeof(float), stream.handle()), operation_);
  check(cudaMemsetAsync(rows_.data(), 0xFF, rows_.size() * sizeof(Id), stream.handle()), operation_);
}

std::size_t BestLists::bytes(std::size_t queries, std::size_t length) {
  return device_bytes(queries * length, sizeof(float)) + device_bytes(queries * length, sizeof(Id));
}

std::size_t BestLists::workspace_bytes(std::size_t queries, std::size_t rows, std::size_t length) {
  const std::size_t bytes = Layout(queries, rows, length).bytes;
  return rows == 1 ? bytes : std::max(bytes, Layout(queries, rows - 1, length).bytes);
}

void BestLists::add(const CudaStream& stream, const ValueTile& tile, std::size_t first_query,
                    std::size_t tile_queries, std::byte* workspace) {
  const Layout layout(tile_queries, tile.rows, length_);
  auto* const both_values = reinterpret_cast<float*>(workspace);
  auto* const both_rows = reinterpret_cast<Id*>(workspace + layout.ids_offset);
  float* const values = values_.data() + first_query * length_;
  Id* const rows = rows_.data() + first_query * length_;
  const auto copy = [&]<typename T>(const T* from, T* to) {
    copy_rows(stream.handle(), to, layout.stride, from, length_, length_, tile.queries,
              cudaMemcpyDeviceToDevice, operation_);
  };
  copy(values, both_values);
  copy(rows, both_rows);
  // Rows of the tile come after those of the lists: ties by position are ties by row.
  layout.of_tile.run(stream.handle(), Ties::positions,
                     {.values = tile.values,
                      .value_stride = tile.rows,
                      .first_id = static_cast<Id>(tile.first_row),
                      .rows = tile.queries,
                      .cols = static_cast<std::uint32_t>(tile.rows),
                      .k = static_cast<std::uint32_t>(layout.taken),
                      .best = both_values + length_,
                      .ids = both_rows + length_,
                      .best_stride = layout.stride},
                     workspace + layout.selection_offset);
  layout.joining.run(stream.handle(), Ties::positions,
                     {.values = both_values,
                      .value_stride = layout.stride,
                      .wide_ids = both_rows,
                      .id_stride = layout.stride,
                      .rows = tile.queries,
                      .cols = static_cast<std::uint32_t>(layout.stride),
                      .k = static_cast<std::uint32_t>(length_),
                      .best = values,
                      .ids = rows,
                      .best_stride = length_},
                     workspace + layout.selection_offset);
}

}  // namespace nearwise::gpu
