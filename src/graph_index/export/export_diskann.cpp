// The files that DiskANN (0.7, package diskannpy) loads as an index in memory: the graph, the vectors, and
// the properties that its Python package asks for.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "backend/context_state.h"
#include "core/float_environment.h"
#include "core/lost_pages.h"
#include "graph_index/export/exported_graph.h"
#include "graph_index/graph_index_state.h"
#include "io/files/atomic_file.h"
#include "nearwise/graph_index_export.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;
using graph_index::exported_rows_at_once;
using graph_index::SearchedGraph;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

// A header of the bytes of the file, the longest list, the row to begin with and a number of rows that it
// keeps apart (none); then for each row the number of its edges and these.
void write_lists(const Context& context, const SearchedGraph& graph, const fs::path& path) {
  const MatrixView<const std::int32_t> edges = graph.rows.edges;
  std::vector<std::uint32_t> lengths(edges.rows());
  std::uint32_t longest = 0;
  constexpr std::size_t header_bytes = 24;
  std::uint64_t bytes = header_bytes;
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    for (const std::int32_t target : edges.row(row)) lengths[row] += target != no_edge ? 1U : 0U;
    longest = std::max(longest, lengths[row]);
    bytes += (1 + lengths[row]) * sizeof(std::uint32_t);
  }
  const std::uint32_t entry = graph_index::central_entry(graph);
  std::array<std::byte, header_bytes> header = {};
  std::memcpy(header.data(), &bytes, sizeof(bytes));
  std::memcpy(header.data() + 8, &longest, sizeof(longest));
  std::memcpy(header.data() + 12, &entry, sizeof(entry));

  AtomicFile file(path);
  file.write(header);
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    if (row % exported_rows_at_once == 0) context.state().cancel.check();
    file.write(std::as_bytes(std::span(&lengths[row], 1)));
    file.write(std::as_bytes(edges.row(row).first(lengths[row])));
  }
  file.commit();
}

void write_vectors_of(const Context& context, const graph_index::GraphRows& rows, const fs::path& path) {
  AtomicFile file(path);
  const std::array<std::uint32_t, 2> shape = {static_cast<std::uint32_t>(rows.count()),
                                              static_cast<std::uint32_t>(rows.codec->dim)};
  file.write(std::as_bytes(std::span(shape)));
  std::vector<double> scratch;
  std::vector<float> vector(rows.codec->dim);
  for (std::size_t row = 0; row < rows.count(); ++row) {
    if (row % exported_rows_at_once == 0) context.state().cancel.check();
    graph_index::export_vector(rows, row, scratch, vector);
    file.write(std::as_bytes(std::span(vector)));
  }
  file.commit();
}

// Type of elements, metric, rows, dimension.
void write_properties(const graph_index::GraphRows& rows, const fs::path& path) {
  constexpr std::uint64_t float32 = 0;
  constexpr std::uint64_t l2 = 0;
  constexpr std::uint64_t inner_product = 1;
  // Vectors of length 1 are in the same order by l2 and by cosine.
  const std::array<std::uint64_t, 4> properties = {
      float32, rows.codec->metric == Metric::inner_product ? inner_product : l2, rows.count(),
      rows.codec->dim};
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(properties)));
  file.commit();
}

}  // namespace

void export_diskann(const Context& context, const GraphIndex& index, const fs::path& folder) {
  const CancellationScope cancellation(context);
  const DefaultFloatEnvironment environment;
  const LostPagesScope lost_pages;
  const GraphIndexInternals::State& state = GraphIndexInternals::state_of(index);
  const index::IndexLock::Reading reading(state.lock, &context.state().cancel);
  graph_index::require_compact("export_diskann", state.graph);
  graph_index::make_folder(folder);
  graph_index::remove_first(folder / "ann");
  write_vectors_of(context, state.graph.rows, folder / "ann.data");
  write_properties(state.graph.rows, folder / "ann_metadata.bin");
  write_lists(context, state.graph, folder / "ann");
  check_lost_pages();
}

}  // namespace nearwise
