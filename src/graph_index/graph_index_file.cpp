// Files of graph indexes (docs/format.md, kind "graph_index").
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/distance.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/graph_sections.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "ops/finite_rows.h"

namespace nearwise {
namespace {

using Json = nlohmann::json;
using State = GraphIndexInternals::State;

constexpr std::size_t checked_rows = 1 << 14;  // between two checks for cancellation

Json describe(const GraphCalibration& calibration) {
  return {{"target_recall", calibration.target_recall},
          {"neighbors", calibration.neighbors},
          {"beam", calibration.beam},
          {"recall", encode(calibration.recall)},
          {"beam_of_100", calibration.beam_of_100},
          {"recall_of_100", encode(calibration.recall_of_100)}};
}

std::optional<GraphCalibration> read_calibration(const Json& metadata, const std::string& source) {
  const auto found = metadata.find("calibration");
  if (found == metadata.end()) return {};
  if (!found->is_object()) fail(ErrorCode::corrupt, "{}: metadata: an object 'calibration' expected", source);
  constexpr std::uint64_t most = graph_index::max_graph_rows;
  GraphCalibration calibration = {.neighbors = read_number(*found, "neighbors", source, most),
                                  .beam = read_number(*found, "beam", source, most),
                                  .beam_of_100 = read_number(*found, "beam_of_100", source, most)};
  try {
    calibration.target_recall = found->at("target_recall").get<double>();
    calibration.recall = decode_recall(found->at("recall"), most_metadata_number);
    calibration.recall_of_100 = decode_recall(found->at("recall_of_100"), most_metadata_number);
    if (!(calibration.target_recall > 0 && calibration.target_recall <= 1))
      throw std::out_of_range("target_recall above 0 and at most 1 expected");
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: calibration: {}", source, error.what());
  }
  return calibration;
}

using graph_index::check_shape;

// Not negative. Returns whether they are ascending, each once.
bool check_ids(std::span<const Id> ids, const std::string& source) {
  bool is_ascending = true;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (row % checked_rows == 0) check_cancelled();
    if (ids[row] < 0)
      fail(ErrorCode::corrupt, "{}: ids, row {}: 0 or more expected, {} found", source, row, ids[row]);
    is_ascending = is_ascending && (row == 0 || ids[row] > ids[row - 1]);
  }
  return is_ascending;
}

// Rows that are not removed; null: all of them.
std::shared_ptr<const graph_index::AllowedRows> read_live(const ContainerReader& reader,
                                                          const graph_index::SearchedGraph& graph) {
  if (reader.find("removed") == nullptr) return nullptr;
  const std::string& source = reader.source();
  const MatrixView<const std::uint32_t> removed = reader.section("removed").rows<std::uint32_t>();
  check_shape(removed.rows() <= graph.rows.count() && removed.cols() == 1, "removed", source);
  for (std::size_t i = 0; i < removed.rows(); ++i)
    if (removed(i, 0) >= graph.rows.count() || (i != 0 && removed(i, 0) <= removed(i - 1, 0)))
      fail(ErrorCode::corrupt, "{}: removed: ascending row numbers below {} expected, {} found", source,
           graph.rows.count(), removed(i, 0));
  if (removed.rows() == 0) return nullptr;
  return graph_index::allowed_of(graph.live_words({removed.data(), removed.rows()}));
}

void check_vectors(const Context& context, const RowsView& vectors, const std::string& source) {
  try {
    check_finite("vectors", context, vectors);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::corrupt, "{}: {}", source, error.what());
  }
}

RowsView read_vectors(const Context& context, const ContainerReader& reader, const Json& metadata,
                      const graph_index::GraphRows& rows) {
  const std::string& source = reader.source();
  ElementType type = ElementType::f32;
  try {
    type = parse_element_type(read_text(metadata, "element_type", source));
  } catch (const Error& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
  }
  const std::size_t dim = rows.codec->dim;
  if (reader.find("vectors") == nullptr) {
    if (rows.count() != 0 && !graph_index::are_vectors_codes(*rows.codec, type))
      fail(ErrorCode::corrupt, "{}: it has no section 'vectors', and its codes are not the vectors", source);
    return {rows.codes.data(), type, rows.count(), dim, rows.codes.cols()};
  }
  const auto all = reader.section("vectors").rows<std::uint8_t>();
  check_shape(all.rows() == rows.count() && all.cols() == dim * element_size(type), "vectors", source);
  const RowsView vectors(all.data(), type, all.rows(), dim, all.cols());
  check_vectors(context, vectors, source);
  return vectors;
}

}  // namespace

void save(const GraphIndex& index, const std::filesystem::path& path) {
  const State& state = GraphIndexInternals::state_of(index);
  const index::IndexLock::Reading reading(state.lock);
  const LostPagesScope lost_pages;
  const graph_index::SearchedGraph& graph = state.graph;
  const graph_index::GraphRows& rows = graph.rows;
  const ScalarCodec& codec = *rows.codec;
  // Other files are those of version 1.2, byte for byte.
  const bool is_ascending =
      !state.table || std::ranges::adjacent_find(rows.ids, std::greater_equal<>()) == rows.ids.end();
  const bool is_changed = !is_ascending || graph.live || rows.count() == 0 ||
                          state.next_id != State::next_id_of(rows) || state.unconnected != 0;
  ContainerWriter writer(path, std::string(graph_index::container_kind));
  writer.set_minor_version(is_changed ? 4 : 2);
  Json metadata = {{"element_type", name(state.type)},
                   {"beam", state.defaults.beam},
                   {"beam_of_100", state.defaults.beam_of_100},
                   {"evaluates_beam", state.defaults.evaluates_beam},
                   {"provenance", state.provenance}};
  metadata.update(graph_index::describe_codec(codec));
  if (state.calibration) metadata["calibration"] = describe(*state.calibration);
  if (is_changed) metadata["next_id"] = state.next_id;
  if (state.unconnected != 0) metadata["unconnected"] = state.unconnected;
  writer.write_metadata(metadata);
  writer.write_section("codes", rows.codes);
  if (codec.has_nibbles()) writer.write_section("nibbles", rows.nibbles);
  writer.write_section("edges", rows.edges);
  graph_index::write_entries(writer, graph.entries.view(), codec.row_bytes());
  if (!rows.are_codes_vectors())
    writer.write_section(
        "vectors", MatrixView<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(rows.vectors.data()),
                                                  rows.count(), state.dim * element_size(state.type),
                                                  rows.vectors.stride_bytes()));
  if (!rows.ids.empty())
    writer.write_section("ids", MatrixView<const Id>(rows.ids.data(), rows.ids.size(), 1));
  if (graph.live) {
    std::vector<std::uint32_t> removed;
    for (std::uint32_t row = 0; row < rows.count(); ++row)
      if (!graph.is_live(row)) removed.push_back(row);
    writer.write_section("removed", MatrixView<const std::uint32_t>(removed.data(), removed.size(), 1));
  }
  check_lost_pages();
  writer.commit();
}

GraphIndex load_graph_index(const Context& context, const std::filesystem::path& path) {
  const CancellationScope cancellation(context);
  const LostPagesScope lost_pages;
  const auto reader = std::make_shared<const ContainerReader>(ContainerReader::open(path));
  const std::string& source = reader->source();
  reader->expect(graph_index::container_kind, {"metadata", "codes", "nibbles", "edges", "entry_tops",
                                               "entry_ends", "entry_rows", "vectors", "ids", "removed"});
  reader->verify();
  const Json metadata = reader->metadata();
  graph_index::GraphDefaults defaults;
  defaults.beam = read_number(metadata, "beam", source);
  defaults.beam_of_100 = read_number(metadata, "beam_of_100", source);
  if (defaults.beam < 1 || defaults.beam > INT32_MAX || defaults.beam_of_100 < 1 ||
      defaults.beam_of_100 > INT32_MAX)
    fail(ErrorCode::corrupt, "{}: metadata: beams of 1 to {} expected, {} and {} found", source, INT32_MAX,
         defaults.beam, defaults.beam_of_100);
  const auto evaluates_beam = metadata.find("evaluates_beam");
  if (evaluates_beam == metadata.end() || !evaluates_beam->is_boolean())
    fail(ErrorCode::corrupt, "{}: metadata: a boolean 'evaluates_beam' expected", source);
  defaults.evaluates_beam = *evaluates_beam;

  graph_index::SearchedGraph graph;
  graph_index::GraphRows& rows = graph.rows;
  rows.codec = std::make_shared<const ScalarCodec>(graph_index::read_codec(metadata, source));
  rows.file = reader;
  const ScalarCodec& codec = *rows.codec;
  rows.codes = reader->section("codes").rows<std::uint8_t>();
  check_shape(rows.count() <= graph_index::max_graph_rows && rows.codes.cols() == codec.row_bytes(), "codes",
              source);
  if (codec.has_nibbles()) {
    rows.nibbles = reader->section("nibbles").rows<std::uint8_t>();
    check_shape(rows.nibbles.rows() == rows.count() && rows.nibbles.cols() == codec.nibble_row_bytes(),
                "nibbles", source);
  }
  rows.edges = reader->section("edges").rows<std::int32_t>();
  check_shape(rows.edges.rows() == rows.count() && rows.edges.cols() >= degree_granule &&
                  rows.edges.cols() % degree_granule == 0,
              "edges", source);
  graph_index::check_edges(rows.edges, rows.count(), source);
  graph.entries = graph_index::read_entries(*reader, rows.codes);
  rows.vectors = read_vectors(context, *reader, metadata, rows);
  bool is_ascending = true;
  if (reader->find("ids") != nullptr) {
    const MatrixView<const Id> ids = reader->section("ids").rows<Id>();
    check_shape(ids.rows() == rows.count() && ids.cols() == 1, "ids", source);
    rows.ids = {ids.data(), ids.rows()};
    is_ascending = check_ids(rows.ids, source);
  }
  graph.live = read_live(*reader, graph);
  graph.prepare(context, context.state().budget);

  auto state = std::make_unique<State>(context.state().budget, std::move(graph));
  if (metadata.contains("next_id")) {
    const auto next_id = static_cast<Id>(read_number(metadata, "next_id", source));
    if (next_id < state->next_id)
      fail(ErrorCode::corrupt, "{}: metadata: next_id of at least {} expected, {} found", source,
           state->next_id, next_id);
    state->next_id = next_id;
  }
  if (metadata.contains("unconnected")) {
    state->unconnected = read_number(metadata, "unconnected", source);
    if (state->unconnected > graph_index::max_graph_rows)
      fail(ErrorCode::corrupt, "{}: metadata: unconnected of at most {} expected, {} found", source,
           graph_index::max_graph_rows, state->unconnected);
  }
  if (!is_ascending) state->table.emplace(state->make_table(0, state->next_id, source));
  state->defaults = defaults;
  state->calibration = read_calibration(metadata, source);
  if (state->calibration) state->calibration->evaluates_beam = defaults.evaluates_beam;
  state->provenance = read_provenance(metadata, source);
  check_lost_pages();
  return GraphIndexInternals::make(std::move(state));
}

}  // namespace nearwise
