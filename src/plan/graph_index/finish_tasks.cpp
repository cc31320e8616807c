// connect, edges: every row can be reached. finish: the index.
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "core/check.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/graph_build.h"
#include "graph_index/graph_sections.h"
#include "io/container/container_writer.h"
#include "plan/graph_index/graph_index_work.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t written_edges = std::size_t{1} << 18;  // per write

// Appends numbers in pieces.
template <typename T>
class SectionOutput {
 public:
  SectionOutput(ContainerWriter& writer, const char* name) : writer_(writer) {
    writer.begin_section(name, container::ElementOf<T>::value);
  }
  void put(T number) {
    numbers_.push_back(number);
    if (numbers_.size() == written_edges) flush();
  }
  void flush() {
    writer_.append(std::as_bytes(std::span(numbers_)));
    numbers_.clear();
  }

 private:
  ContainerWriter& writer_;
  std::vector<T> numbers_;
};

// The output of `connect`: rows in ascending order, one for each added edge.
class AddedEdges {
 public:
  explicit AddedEdges(const GraphIndexWork& work)
      : reader_(ContainerReader::open(work.file_of(connect_name))),
        rows_(reader_.section("rows").rows<std::uint32_t>()),
        targets_(reader_.section("targets").rows<std::int32_t>()) {
    graph_index::check_shape(rows_.cols() == 1 && targets_.cols() == 1 && rows_.rows() == targets_.rows(),
                             "targets", reader_.source());
    for (std::size_t i = 0; i < rows_.rows(); ++i)
      if (rows_(i, 0) >= work.rows || (i != 0 && rows_(i, 0) < rows_(i - 1, 0)) || targets_(i, 0) < 0 ||
          static_cast<std::size_t>(targets_(i, 0)) >= work.rows)
        fail(ErrorCode::corrupt, "{}: edge {} is none between ascending rows", reader_.source(), i);
  }

  // Adds those of a row; called in ascending order of rows.
  void put(std::size_t row, std::span<std::int32_t> list) {
    const std::size_t first = next_;
    while (next_ < rows_.rows() && rows_(next_, 0) == row) ++next_;
    if (next_ - first > list.size())
      fail(ErrorCode::corrupt, "{}: row {} has {} edges, more than a list", reader_.source(), row,
           next_ - first);
    if (next_ != first) graph_index::put_edges(list, {&targets_(first, 0), next_ - first});
  }

 private:
  const ContainerReader reader_;
  const MatrixView<const std::uint32_t> rows_;
  const MatrixView<const std::int32_t> targets_;
  std::size_t next_ = 0;
};

}  // namespace

LinkedEdges::LinkedEdges(const GraphIndexWork& work) {
  for (std::size_t block = 0; block < work.blocks(); ++block) {
    readers.push_back(ContainerReader::open(work.file_of(link_name(block))));
    blocks.push_back(readers.back().section("edges").rows<std::int32_t>());
    graph_index::check_shape(
        blocks.back().rows() == work.rows_of(block) && blocks.back().cols() == work.degree(), "edges",
        readers.back().source());
    graph_index::check_edges(blocks.back(), work.rows, readers.back().source());
  }
}

void connect_blocks(const Context& context, const GraphIndexWork& work) {
  const Codes input(context, work);
  const LinkedEdges linked(work);
  const graph_index::EdgeChanges changes = graph_index::connect_rows(
      context, input.all(), work.shape_of_codes().code_dim(), graph_index::EdgeLists(linked.blocks));
  ContainerWriter writer(work.file_of(connect_name), "graph_connections");
  writer.write_metadata(nlohmann::json::object());
  SectionOutput<std::uint32_t> rows(writer, "rows");
  changes.for_each([&](std::uint32_t row, std::span<const std::int32_t> added) {
    for (std::size_t i = 0; i < added.size(); ++i) rows.put(row);
  });
  rows.flush();
  SectionOutput<std::int32_t> targets(writer, "targets");
  changes.for_each([&](std::uint32_t, std::span<const std::int32_t> added) {
    for (const std::int32_t target : added) targets.put(target);
  });
  targets.flush();
  writer.commit();
}

void join_edges(const Context& context, const GraphIndexWork& work) {
  const LinkedEdges linked(work);
  AddedEdges added(work);
  const std::size_t degree = work.degree();
  const std::size_t part = std::max<std::size_t>(1, written_edges / degree);
  Buffer<std::int32_t> edges(*context.state().budget, std::min(part, work.block_rows) * degree);
  ContainerWriter writer(work.file_of(edges_name), "graph_edges");
  writer.write_metadata(nlohmann::json::object());
  writer.begin_section("edges", container::Element::i32, {.columns = degree});
  ProgressMeter progress(context.state().options.progress, context.state().clock, "plan_graph_index",
                         work.rows);
  for (std::size_t block = 0; block < work.blocks(); ++block)
    for (std::size_t first = 0; first < work.rows_of(block); first += part) {
      context.state().cancel.check();
      const std::size_t count = std::min(part, work.rows_of(block) - first);
      std::copy_n(linked.blocks[block].row(first).data(), count * degree, edges.data());
      for (std::size_t row = 0; row < count; ++row)
        added.put(work.first_row(block) + first + row, edges.span().subspan(row * degree, degree));
      writer.append(std::as_bytes(edges.span().first(count * degree)));
      progress.add(count);
    }
  writer.commit();
}

void finish_graph_index(const Context& context, const GraphIndexWork& work) {
  const PlanInput input(context, work.files);
  const Codes codes(context, work);
  const ContainerReader edges = ContainerReader::open(work.file_of(edges_name));
  const ContainerReader entries = ContainerReader::open(work.file_of(entries_name));
  std::optional<ContainerReader> nibbles;
  graph_index::SearchedGraph graph;
  graph_index::GraphRows& rows = graph.rows;
  rows.codec =
      std::make_shared<const ScalarCodec>(read_codec(work, work.has_nibbles() ? nibbles_name : codes_name));
  rows.codes = codes.all();
  if (work.has_nibbles()) {
    nibbles.emplace(ContainerReader::open(work.file_of(nibbles_name)));
    rows.nibbles = nibbles->section("nibbles").rows<std::uint8_t>();
    graph_index::check_shape(rows.nibbles.rows() == work.rows && rows.codec->has_nibbles() &&
                                 rows.nibbles.cols() == rows.codec->nibble_row_bytes(),
                             "nibbles", nibbles->source());
  }
  rows.edges = edges.section("edges").rows<std::int32_t>();
  graph_index::check_shape(rows.edges.rows() == work.rows && rows.edges.cols() == work.degree(), "edges",
                           edges.source());
  graph_index::check_edges(rows.edges, work.rows, edges.source());
  const RowsView vectors = input.all();
  rows.vectors = graph_index::are_vectors_codes(*rows.codec, work.type)
                     ? RowsView(rows.codes.data(), work.type, work.rows, work.dim, rows.codes.cols())
                     : vectors;
  graph.entries = graph_index::read_entries(entries, rows.codes);
  // A tenth is left for writing the index.
  Stages stages(context, "plan_graph_index");
  GraphIndex index =
      graph_index::index_of_graph(stages.next(9, 1), std::move(graph), work.options.calibration);
  std::map<std::string, std::string> provenance = index.provenance();
  provenance.insert(work.options.provenance.begin(), work.options.provenance.end());
  index.set_provenance(std::move(provenance));
  save(index, work.files.output);
}

}  // namespace nearwise::plan
