#include "backend/cuda/graph/device_graph.h"

#include "backend/cuda/rows/packed_rows.h"
#include "core/lost_pages.h"

namespace nearwise::gpu {
namespace {

template <typename T>
RowsView bytes_of(const MatrixView<const T>& matrix) {
  return {matrix.data(), ElementType::u8, matrix.rows(), matrix.cols() * sizeof(T),
          matrix.stride() * sizeof(T)};
}

}  // namespace

DeviceGraph::Copy::Copy(const CudaStream& stream, MemoryBudget& budget, const SearchGraphView& graph) {
  const auto copy = [&](const RowsView& rows) {
    DeviceBuffer<std::byte> made(stream, budget, rows.rows() * rows.dim(), search_graph_name);
    if (made.size() != 0) copy_rows_to_device(stream, rows, made.data());
    return made;
  };
  const auto copy_numbers = [&](std::span<const std::uint32_t> numbers) {
    DeviceBuffer<std::uint32_t> made(stream, budget, numbers.size(), search_graph_name);
    if (made.size() != 0) copy_to_device(stream, numbers, made.data(), search_graph_name);
    return made;
  };
  const EntryTreeView& entries = graph.entries;
  codes = copy(bytes_of(graph.codes));
  nibbles = copy(bytes_of(graph.nibbles));
  edges = copy(bytes_of(graph.edges));
  top_codes = copy(bytes_of(entries.top_codes));
  leaf_codes = copy(bytes_of(entries.leaf_codes));
  ends = copy_numbers(entries.ends);
  leaf_rows = copy_numbers(entries.rows);
  const auto bytes = [](const DeviceBuffer<std::byte>& buffer) {
    return reinterpret_cast<const std::uint8_t*>(buffer.data());
  };
  arrays = {.codes = bytes(codes),
            .code_bytes = static_cast<std::uint32_t>(graph.codes.cols()),
            .nibbles = bytes(nibbles),
            .nibble_bytes =
                nibbles.size() != 0 ? static_cast<std::uint32_t>(graph.nibbles.cols()) : std::uint32_t{0},
            .edges = reinterpret_cast<const std::int32_t*>(edges.data()),
            .degree = static_cast<std::uint32_t>(graph.edges.cols()),
            .top_codes = bytes(top_codes),
            .tops = static_cast<std::uint32_t>(entries.top_codes.rows()),
            .ends = ends.data(),
            .leaf_codes = bytes(leaf_codes),
            .leaf_rows = leaf_rows.data()};
  // Searches on other streams read it, and none that comes later would notice a lost page.
  stream.synchronize(search_graph_name);
  check_lost_pages();
}

const GraphArrays& DeviceGraph::arrays(const CudaStream& stream) const {
  const std::lock_guard lock(mutex_);
  if (!copy_) copy_ = std::make_unique<const Copy>(stream, *budget_, graph_);
  return copy_->arrays;
}

}  // namespace nearwise::gpu
