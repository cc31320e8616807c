#include "backend/cuda/rows/running_top_k.h"

#include <algorithm>

#include "backend/cuda/rows/row_copy.h"
#include "backend/cuda/rows/row_selection.h"

namespace nearwise::gpu {
namespace {

// Workspace: the best so far and then a tile's best, and temporary memory of selection.
struct Layout {
  Layout(std::size_t queries, std::size_t rows, std::size_t length)
      : taken(std::min(rows, length)),
        stride(length + taken),
        ids_offset(device_bytes(queries * stride, sizeof(float))),
        selection_offset(ids_offset + device_bytes(queries * stride, sizeof(Id))),
        tile_selection(queries, rows, taken),
        merge_selection(queries, stride, length),
        bytes(
            selection_offset +
            device_bytes(std::max(tile_selection.workspace_bytes(), merge_selection.workspace_bytes()), 1)) {}

  std::size_t taken;   // entries taken from the tile
  std::size_t stride;  // length of both parts together
  std::size_t ids_offset;
  std::size_t selection_offset;
  RowSelection tile_selection;
  RowSelection merge_selection;
  std::size_t bytes;
};

}  // namespace

RunningTopK::RunningTopK(const CudaStream& stream, std::size_t queries, std::size_t length,
                         const char* operation, Order order)
    : length_(length),
      operation_(operation),
      order_(order),
      values_(stream, queries * length, operation),
      rows_(stream, queries * length, operation) {
  clear(stream);
}

void RunningTopK::clear(const CudaStream& stream) {
  static_assert(no_id == -1);
  check(cudaMemsetAsync(values_.data(), 0xFF, values_.size() * sizeof(float), stream.handle()), operation_);
  check(cudaMemsetAsync(rows_.data(), 0xFF, rows_.size() * sizeof(Id), stream.handle()), operation_);
}

std::size_t RunningTopK::bytes(std::size_t queries, std::size_t length) {
  return device_bytes(queries * length, sizeof(float)) + device_bytes(queries * length, sizeof(Id));
}

std::size_t RunningTopK::workspace_bytes(std::size_t queries, std::size_t rows, std::size_t length) {
  const std::size_t bytes = Layout(queries, rows, length).bytes;
  return rows == 1 ? bytes : std::max(bytes, Layout(queries, rows - 1, length).bytes);
}

void RunningTopK::add(const CudaStream& stream, const ValueTile& tile, std::size_t first_query,
                      std::size_t tile_queries, std::byte* workspace) {
  const Layout layout(tile_queries, tile.rows, length_);
  float* const values = values_.data() + first_query * length_;
  Id* const rows = rows_.data() + first_query * length_;
  // The rest of a list is empty: there have not been more rows.
  const std::size_t listed = std::min(length_, tile.first_row);
  SelectionTask selection = {.values = tile.values,
                             .value_stride = tile.rows,
                             .first_id = static_cast<Id>(tile.first_row),
                             .rows = tile.queries,
                             .cols = static_cast<std::uint32_t>(tile.rows),
                             .k = static_cast<std::uint32_t>(layout.taken),
                             .sign_mask = order_ == Order::largest ? INT32_MIN : 0,
                             .best = values,
                             .ids = rows,
                             .best_stride = length_};
  std::byte* const selection_workspace = workspace + layout.selection_offset;
  if (listed == 0)
    return layout.tile_selection.run(stream.handle(), Ties::positions, selection, selection_workspace);

  // Rows of the tile follow those of the list: ties by position are ties by row.
  auto* const merged_values = reinterpret_cast<float*>(workspace);
  auto* const merged_rows = reinterpret_cast<Id*>(workspace + layout.ids_offset);
  const auto copy = [&]<typename T>(const T* from, T* to) {
    copy_rows(stream.handle(), to, layout.stride, from, length_, listed, tile.queries,
              cudaMemcpyDeviceToDevice, operation_);
  };
  copy(values, merged_values);
  copy(rows, merged_rows);
  selection.best = merged_values + listed;
  selection.ids = merged_rows + listed;
  selection.best_stride = layout.stride;
  layout.tile_selection.run(stream.handle(), Ties::positions, selection, selection_workspace);

  const std::size_t cols = listed + layout.taken;
  const std::size_t best = std::min(length_, cols);
  RowSelection(tile_queries, cols, best)
      .run(stream.handle(), Ties::positions,
           {.values = merged_values,
            .value_stride = layout.stride,
            .wide_ids = merged_rows,
            .id_stride = layout.stride,
            .rows = tile.queries,
            .cols = static_cast<std::uint32_t>(cols),
            .k = static_cast<std::uint32_t>(best),
            .sign_mask = selection.sign_mask,
            .best = values,
            .ids = rows,
            .best_stride = length_},
           selection_workspace);
}

}  // namespace nearwise::gpu
