// The files that SVS (Scalable Vector Search, 0.5) loads as a Vamana index: parameters and graph, each a
// binary or text file with a description in TOML, and the vectors.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "backend/context_state.h"
#include "core/float_environment.h"
#include "core/lost_pages.h"
#include "graph_index/export/exported_graph.h"
#include "graph_index/graph_index_state.h"
#include "io/files/atomic_file.h"
#include "nearwise/graph_index_export.h"
#include "nearwise/vector_file.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;
using graph_index::SearchedGraph;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::size_t header_bytes = 1024;
constexpr std::array<unsigned char, 8> magic = {0xFE, 0x80, 0x99, 0x57, 0xB2, 0xA6, 0xD4, 0xCA};

using Uuid = std::array<unsigned char, 16>;

// The same edges have the same one.
Uuid uuid_of(MatrixView<const std::int32_t> edges) {
  Uuid uuid;
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash,
                           XXH3_128bits(edges.data(), edges.rows() * edges.cols() * sizeof(std::int32_t)));
  std::memcpy(uuid.data(), hash.digest, uuid.size());
  return uuid;
}

std::string text_of(const Uuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// Rows of [count, neighbours], padded with zeros.
void write_graph(const Context& context, MatrixView<const std::int32_t> edges, const fs::path& folder) {
  const std::size_t degree = edges.cols();
  const Uuid uuid = uuid_of(edges);
  std::vector<std::byte> header(header_bytes);
  const std::array<std::uint64_t, 2> shape = {edges.rows(), degree + 1};
  std::memcpy(header.data(), magic.data(), magic.size());
  std::reverse_copy(uuid.begin(), uuid.end(), reinterpret_cast<unsigned char*>(header.data()) + 8);
  std::memcpy(header.data() + 24, shape.data(), sizeof(shape));
  AtomicFile file(folder / "graph_0.svs");
  file.write(header);
  std::vector<std::uint32_t> list(degree + 1);
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    if (row % graph_index::exported_rows_at_once == 0) context.state().cancel.check();
    std::ranges::fill(list, 0);
    for (const std::int32_t target : edges.row(row)) {
      if (target == no_edge) break;
      list[++list[0]] = static_cast<std::uint32_t>(target);
    }
    file.write(std::as_bytes(std::span(list)));
  }
  file.commit();
  write_text(folder / "svs_config.toml", fmt::format(R"(__version__ = 'v0.0.2'

[object]
__schema__ = 'default_graph'
__version__ = 'v0.0.0'
binary_file = 'graph_0.svs'
eltype = 'uint32'
max_degree = {}
name = 'graph'
num_vertices = {}
uuid = '{}'
)",
                                                     degree, edges.rows(), text_of(uuid)));
}

void write_parameters(const SearchedGraph& graph, std::size_t beam, const fs::path& folder) {
  write_text(folder / "svs_config.toml",
             fmt::format(R"(__version__ = 'v0.0.2'

[object]
__schema__ = 'vamana_index_parameters'
__version__ = 'v0.0.3'
entry_point = {0}
name = 'vamana index parameters'

    [object.build_parameters]
    __schema__ = 'vamana_build_parameters'
    __version__ = 'v0.0.1'
    alpha = 1.2
    graph_max_degree = {1}
    max_candidate_pool_size = {2}
    name = 'vamana build parameters'
    prune_to = {1}
    use_full_search_history = true
    window_size = {2}

    [object.search_parameters]
    __schema__ = 'vamana_search_parameters'
    __version__ = 'v0.0.1'
    prefetch_lookahead = 4
    prefetch_step = 2
    search_buffer_capacity = {3}
    search_buffer_visited_set = true
    search_window_size = {3}
)",
                         graph_index::central_entry(graph), graph.rows.edges.cols(),
                         2 * graph.rows.edges.cols(), beam));
}

void write_vectors(const Context& context, const graph_index::GraphRows& rows, const fs::path& path) {
  const std::size_t dim = rows.codec->dim;
  VectorWriter writer(path, ElementType::f32, dim);
  std::vector<double> scratch;
  Matrix<float> batch(std::min(graph_index::exported_rows_at_once, rows.count()), dim);
  for (std::size_t first = 0; first < rows.count(); first += graph_index::exported_rows_at_once) {
    context.state().cancel.check();
    const std::size_t count = std::min(graph_index::exported_rows_at_once, rows.count() - first);
    for (std::size_t i = 0; i < count; ++i)
      graph_index::export_vector(rows, first + i, scratch, batch.row(i));
    writer.append(RowsView(batch).slice(0, count));
  }
  writer.commit();
}

}  // namespace

void export_svs(const Context& context, const GraphIndex& index, const fs::path& folder) {
  const CancellationScope cancellation(context);
  const DefaultFloatEnvironment environment;
  const LostPagesScope lost_pages;
  const GraphIndexInternals::State& state = GraphIndexInternals::state_of(index);
  const index::IndexLock::Reading reading(state.lock, &context.state().cancel);
  const SearchedGraph& graph = state.graph;
  graph_index::require_compact("export_svs", graph);
  for (const char* const part : {"config", "graph"}) graph_index::make_folder(folder / part);
  graph_index::remove_first(folder / "config/svs_config.toml");
  write_vectors(context, graph.rows, folder / "vectors.fvecs");
  write_graph(context, graph.rows.edges, folder / "graph");
  write_parameters(graph, state.defaults.beam, folder / "config");
  check_lost_pages();
}

}  // namespace nearwise
