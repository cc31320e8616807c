// The file of hnswlib 0.8 (hnswalg.h, saveIndex): a header of sizes, the elements with their lists of level
// 0, then for each element its lists of higher levels.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/float_environment.h"
#include "core/math/elementary.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/export/exported_graph.h"
#include "graph_index/graph_index_state.h"
#include "io/files/atomic_file.h"
#include "nearwise/exact.h"
#include "nearwise/graph_index_export.h"

namespace nearwise {
namespace {

using graph_index::SearchedGraph;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::uint64_t construction_breadth = 200;  // hnswlib uses it if elements are added

class Bytes {
 public:
  template <typename T>
  void add(T value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(value));
  }
  std::size_t size() const { return bytes_.size(); }
  void write_to(AtomicFile& file) {
    file.write(bytes_);
    bytes_.clear();
  }

 private:
  std::vector<std::byte> bytes_;
};

// Edges among the entries, so that a greedy descent reaches the one nearest to a query.
struct UpperLevel {
  std::vector<std::uint32_t> rows;  // of the index, ascending
  Buffer<std::int32_t> edges;       // [rows, degree] places in `rows`
  std::size_t degree = degree_granule;
};

UpperLevel upper_level(const Context& context, const SearchedGraph& graph) {
  UpperLevel level;
  const graph_index::GraphRows& rows = graph.rows;
  const EntryTreeView entries = graph.entries.view();
  level.rows.assign(entries.rows.begin(), entries.rows.end());
  std::ranges::sort(level.rows);
  const std::size_t count = level.rows.size();
  Matrix<std::uint8_t> codes(count, rows.codes.cols());
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(codes.row(i).data(), rows.codes.row(level.rows[i]).data(), codes.cols());
  const std::size_t length = std::min<std::size_t>(2 * level.degree, count - 1);
  Matrix<std::int32_t> lists(count, std::max<std::size_t>(length, 1));
  std::fill_n(lists.data(), count * lists.cols(), no_edge);
  if (length != 0) {
    const Neighbors nearest = exact_knn_graph(
        context, RowsView(codes.data(), ElementType::u8, count, rows.codec->code_dim(), codes.cols()),
        length);
    for (std::size_t i = 0; i < count * length; ++i)
      lists.data()[i] = static_cast<std::int32_t>(nearest.ids.data()[i]);
  }
  level.edges =
      graph_index::build_edges(context, *context.state().budget, codes.view(), lists.view(), level.degree);
  graph_index::connect_rows(context, codes.view(), rows.codec->code_dim(),
                            {level.edges.data(), count, level.degree});
  return level;
}

void add_list(Bytes& out, std::span<const std::int32_t> edges, std::size_t most,
              const std::vector<std::uint32_t>* rows, bool is_removed = false) {
  const auto count = std::min<std::size_t>(
      most, static_cast<std::size_t>(std::ranges::find(edges, no_edge) - edges.begin()));
  out.add(static_cast<std::uint16_t>(count));
  out.add(static_cast<std::uint16_t>(is_removed ? 1 : 0));  // markDelete() of hnswlib
  for (std::size_t i = 0; i < most; ++i) {
    const auto target = i < count ? static_cast<std::uint32_t>(edges[i]) : 0U;
    out.add(rows != nullptr && i < count ? (*rows)[target] : target);
  }
}

}  // namespace

void export_hnswlib(const Context& context, const GraphIndex& index, const std::filesystem::path& path) {
  const CancellationScope cancellation(context);
  const DefaultFloatEnvironment environment;
  const GraphIndexInternals::State& state = GraphIndexInternals::state_of(index);
  const index::IndexLock::Reading reading(state.lock, &context.state().cancel);
  const SearchedGraph& graph = state.graph;
  const std::size_t rows = graph.rows.count();
  require(graph.live_count() >= 1, "export_hnswlib: the index must hold a vector, got none");
  const Context quiet = context.without_progress();
  const UpperLevel upper = upper_level(quiet, graph);
  const std::uint64_t links = index.degree() / 2;  // hnswlib: twice as many on level 0
  const std::uint64_t list_bytes = index.degree() * sizeof(std::uint32_t) + sizeof(std::uint32_t);
  const std::uint64_t vector_bytes = index.dim() * sizeof(float);

  AtomicFile file(path);
  Bytes bytes;
  bytes.add(std::uint64_t{0});                                   // offset of level 0 in an element
  bytes.add(std::uint64_t{rows});                                // room
  bytes.add(std::uint64_t{rows});                                // elements
  bytes.add(list_bytes + vector_bytes + sizeof(std::uint64_t));  // bytes of an element
  bytes.add(list_bytes + vector_bytes);                          // offset of its label
  bytes.add(list_bytes);                                         // offset of its vector
  bytes.add(std::int32_t{1});                                    // highest level
  bytes.add(upper.rows.front());                                 // element to begin with
  bytes.add(links);
  bytes.add(std::uint64_t{index.degree()});
  bytes.add(links);
  bytes.add(1 / natural_logarithm(static_cast<double>(links)));
  bytes.add(construction_breadth);
  std::vector<double> scratch;
  std::vector<float> vector(index.dim());
  for (std::size_t row = 0; row < rows; ++row) {
    if (row % graph_index::exported_rows_at_once == 0) context.state().cancel.check();
    add_list(bytes, graph.rows.edges.row(row), index.degree(), nullptr, !graph.is_live(row));
    graph_index::export_vector(graph.rows, row, scratch, vector);
    for (const float element : vector) bytes.add(element);
    bytes.add(static_cast<std::uint64_t>(graph.rows.id_of(row)));
    bytes.write_to(file);
  }
  std::size_t place = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    if (place == upper.rows.size() || upper.rows[place] != row) {
      bytes.add(std::uint32_t{0});
    } else {
      bytes.add(static_cast<std::uint32_t>(links * sizeof(std::uint32_t) + sizeof(std::uint32_t)));
      add_list(bytes, {upper.edges.data() + place * upper.degree, upper.degree}, links, &upper.rows);
      ++place;
    }
    bytes.write_to(file);
  }
  check_lost_pages();
  file.commit();
}

}  // namespace nearwise
