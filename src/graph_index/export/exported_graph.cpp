#include "graph_index/export/exported_graph.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/convert.h"
#include "graph_index/edges/code_distance.h"

namespace nearwise::graph_index {

void require_compact(const char* operation, const SearchedGraph& graph) {
  const std::size_t rows = graph.rows.count();
  require(rows >= 1, "{}: the index must hold a vector, got none", operation);
  require(graph.live_count() == rows && std::ranges::is_sorted(graph.rows.ids),
          "{}: vectors were removed or added since the graph was built; call compact() first", operation);
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    fail(ErrorCode::cannot_create, "{}: cannot make the folder: {}", folder.string(), error.message());
}

void remove_first(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) fail(ErrorCode::cannot_create, "{}: cannot be replaced: {}", file.string(), error.message());
}

std::uint32_t central_entry(const SearchedGraph& graph) {
  const std::span<const std::uint32_t> entries = graph.entries.view().rows;
  const MatrixView<const std::uint8_t> codes = graph.rows.codes;
  std::vector<std::uint64_t> sums(codes.cols(), 0);
  for (const std::uint32_t row : entries)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += codes(row, i);
  std::vector<std::uint8_t> mean(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    mean[i] = static_cast<std::uint8_t>((sums[i] + entries.size() / 2) / entries.size());
  return *std::ranges::min_element(entries, {},
                                   [&](std::uint32_t row) { return code_distance(codes.row(row), mean); });
}

void export_vector(const GraphRows& rows, std::size_t row, std::vector<double>& scratch,
                   std::span<float> out) {
  scratch.resize(rows.codec->dim);
  row_to_double(rows.vectors, row, scratch.data());
  double squares = 0;
  for (const double element : scratch) squares += element * element;
  const double length = rows.codec->metric == Metric::cosine && squares > 0 ? std::sqrt(squares) : 1;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(scratch[i] / length);
}

}  // namespace nearwise::graph_index
