// codes, nibbles: what the graph is traversed by. entries: where searches begin.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "backend/context_state.h"
#include "core/check.h"
#include "graph_index/graph_rows.h"
#include "graph_index/graph_sections.h"
#include "graph_index/train_codec.h"
#include "io/container/container_writer.h"
#include "ops/finite_rows.h"
#include "plan/graph_index/graph_index_work.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t written_bytes = std::size_t{2} << 20;  // of codes per write

// Appends a section of rows, made in parts: make(first, count, out).
void write_rows(const Context& context, ContainerWriter& writer, const char* name, std::size_t rows,
                std::size_t row_bytes,
                const std::function<void(std::size_t, std::size_t, std::uint8_t*)>& make) {
  const std::size_t part = std::min(rows, std::max<std::size_t>(1, written_bytes / row_bytes));
  Buffer<std::uint8_t> bytes(*context.state().budget, part * row_bytes);
  writer.begin_section(name, container::Element::u8, {.columns = row_bytes});
  ProgressMeter progress(context.state().options.progress, context.state().clock, "plan_graph_index", rows);
  for (std::size_t first = 0; first < rows; first += part) {
    const std::size_t count = std::min(part, rows - first);
    make(first, count, bytes.data());
    writer.append(std::as_bytes(bytes.span().first(count * row_bytes)));
    progress.add(count);
  }
}

}  // namespace

Codes::Codes(const Context& context, const GraphIndexWork& work) : input_(context, work.graph.codes) {
  const ContainerReader reader = ContainerReader::open(work.graph.codes.file);
  const container::Section& codes = reader.section("codes").info();
  graph_index::check_shape(codes.rows == work.rows && codes.columns == work.shape_of_codes().row_bytes(),
                           "codes", reader.source());
}

ScalarCodec read_codec(const GraphIndexWork& work, const char* task) {
  const ContainerReader reader = ContainerReader::open(work.file_of(task));
  ScalarCodec codec = graph_index::read_codec(reader.metadata(), reader.source());
  if (codec.metric != work.options.index.metric || codec.dim != work.dim)
    fail(ErrorCode::corrupt, "{}: metadata: the metric {} and {} dimensions expected", reader.source(),
         name(work.options.index.metric), work.dim);
  return codec;
}

void write_codes(const Context& context, const GraphIndexWork& work) {
  const PlanInput input(context, work.files);
  const RowsView rows = input.all();
  check_finite("plan_graph_index", context, rows);
  const ScalarCodec codec = graph_index::train_codec(context, rows, work.options.index.metric);
  ContainerWriter writer(work.file_of(codes_name), "graph_codes");
  writer.write_metadata(graph_index::describe_codec(codec));
  write_rows(context, writer, "codes", rows.rows(), codec.row_bytes(),
             [&](std::size_t first, std::size_t count, std::uint8_t* codes) {
               graph_index::encode_rows(
                   context, codec, rows, count, [&](std::size_t row) { return first + row; }, codes);
             });
  writer.commit();
}

void write_nibbles(const Context& context, const GraphIndexWork& work) {
  const Codes input(context, work);
  const MatrixView<const std::uint8_t> codes = input.all();
  ScalarCodec codec = read_codec(work, codes_name);
  graph_index::train_nibbles(codec, codes);
  ContainerWriter writer(work.file_of(nibbles_name), "graph_nibbles");
  writer.write_metadata(graph_index::describe_codec(codec));
  write_rows(context, writer, "nibbles", codes.rows(), codec.nibble_row_bytes(),
             [&](std::size_t first, std::size_t count, std::uint8_t* nibbles) {
               graph_index::encode_nibbles(context, codec, codes.row(first).data(), count, nibbles);
             });
  writer.commit();
}

void train_entries(const Context& context, const GraphIndexWork& work) {
  const Codes input(context, work);
  const graph_index::EntryTree entries =
      graph_index::EntryTree::train(context, input.all(), work.shape_of_codes().code_dim());
  ContainerWriter writer(work.file_of(entries_name), "graph_entries");
  writer.write_metadata(nlohmann::json::object());
  graph_index::write_entries(writer, entries.view(), work.shape_of_codes().row_bytes());
  writer.commit();
}

}  // namespace nearwise::plan
