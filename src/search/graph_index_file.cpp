// Files of graph indexes (docs/format.md, kind "graph_index").
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/distance.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "ops/finite_rows.h"
#include "search/graph_index_state.h"

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
  GraphCalibration calibration = {.neighbors = read_number(*found, "neighbors", source),
                                  .beam = read_number(*found, "beam", source),
                                  .beam_of_100 = read_number(*found, "beam_of_100", source)};
  try {
    calibration.target_recall = found->at("target_recall").get<double>();
    calibration.recall = decode_recall(found->at("recall"));
    calibration.recall_of_100 = decode_recall(found->at("recall_of_100"));
    if (!(calibration.target_recall > 0 && calibration.target_recall <= 1))
      throw std::out_of_range("target_recall above 0 and at most 1 expected");
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: calibration: {}", source, error.what());
  }
  return calibration;
}

// Codes beyond these would overflow the sums of a search or give no order.
void check_codec(const ScalarCodec& codec) {
  const auto all_finite = [](const std::vector<float>& values) {
    return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  };
  if (codec.dim == 0 || codec.dim >= ScalarCodec::max_dim) throw std::out_of_range("dim is out of range");
  if (codec.offsets.size() != codec.code_dim() || !all_finite(codec.offsets))
    throw std::out_of_range("a finite offset expected for every dimension");
  if (!(codec.step > 0 && std::isfinite(codec.step))) throw std::out_of_range("a step above 0 expected");
  if (!(codec.max_norm >= 0 && std::isfinite(codec.max_norm)))
    throw std::out_of_range("max_norm of at least 0 expected");
  if (!codec.has_nibbles()) return;
  if (codec.nibble_offsets.size() != codec.code_dim() || !all_finite(codec.nibble_offsets))
    throw std::out_of_range("a finite nibble_offset expected for every dimension");
  if (!(codec.nibble_step > 0 && std::isfinite(codec.nibble_step)))
    throw std::out_of_range("a nibble_step above 0 expected");
}

ScalarCodec read_codec(const Json& metadata, const std::string& source) {
  ScalarCodec codec;
  try {
    codec.metric = parse_metric(metadata.at("metric").get<std::string>());
    codec.dim = metadata.at("dim").get<std::size_t>();
    const Json& codes = metadata.at("codes");
    codec.offsets = codes.at("offsets").get<std::vector<float>>();
    codec.step = codes.at("step").get<float>();
    codec.max_norm = codes.at("max_norm").get<double>();
    if (codes.contains("nibble_offsets")) {
      codec.nibble_offsets = codes.at("nibble_offsets").get<std::vector<float>>();
      codec.nibble_step = codes.at("nibble_step").get<float>();
      if (codec.nibble_offsets.empty()) throw std::out_of_range("nibble_offsets are empty");
    }
    check_codec(codec);
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
  }
  return codec;
}

void check_shape(bool right, const char* section, const std::string& source) {
  if (!right) fail(ErrorCode::corrupt, "{}: {}: its shape does not fit the other sections", source, section);
}

// Edges are other rows, different ones, and none follow the end of a list.
void check_edges(MatrixView<const std::int32_t> edges, const std::string& source) {
  const auto rows = static_cast<std::int64_t>(edges.rows());
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    if (row % checked_rows == 0) check_cancelled();
    bool is_ended = false;
    for (const std::int32_t target : edges.row(row)) {
      const bool is_row = target >= 0 && target < rows;
      if ((target != no_edge && !is_row) || (is_ended && is_row))
        fail(ErrorCode::corrupt,
             "{}: edges, row {}: {} is not a row of the index or follows the end of the list", source, row,
             target);
      is_ended = is_ended || target == no_edge;
    }
  }
}

search::EntryTree read_entries(const ContainerReader& reader, MatrixView<const std::uint8_t> codes) {
  const std::string& source = reader.source();
  const auto top_codes = reader.section("entry_tops").rows<std::uint8_t>();
  const auto ends = reader.section("entry_ends").rows<std::uint32_t>();
  const auto rows = reader.section("entry_rows").rows<std::uint32_t>();
  check_shape(top_codes.rows() >= 1 && top_codes.cols() == codes.cols(), "entry_tops", source);
  check_shape(ends.rows() == top_codes.rows() && ends.cols() == 1, "entry_ends", source);
  check_shape(rows.rows() >= 1 && rows.cols() == 1 && rows.rows() <= codes.rows(), "entry_rows", source);
  std::vector<std::uint32_t> all_ends(ends.data(), ends.data() + ends.rows());
  std::vector<std::uint32_t> all_rows(rows.data(), rows.data() + rows.rows());
  if (!std::ranges::is_sorted(all_ends) || all_ends.back() != all_rows.size())
    fail(ErrorCode::corrupt, "{}: entry_ends: ascending numbers up to {} expected", source, all_rows.size());
  for (const std::uint32_t row : all_rows)
    if (row >= codes.rows())
      fail(ErrorCode::corrupt, "{}: entry_rows: 0 to {} expected, {} found", source, codes.rows() - 1, row);
  return {codes, copy_of(top_codes), std::move(all_ends), std::move(all_rows)};
}

// Not negative, ascending, each once.
void check_ids(std::span<const Id> ids, const std::string& source) {
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (row % checked_rows == 0) check_cancelled();
    if (ids[row] < 0 || (row != 0 && ids[row] <= ids[row - 1]))
      fail(ErrorCode::corrupt, "{}: ids, row {}: ascending ids expected, {} found", source, row, ids[row]);
  }
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
                      const State& state) {
  const std::string& source = reader.source();
  ElementType type = ElementType::f32;
  try {
    type = parse_element_type(read_text(metadata, "element_type", source));
  } catch (const Error& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
  }
  const std::size_t dim = state.codec.dim;
  if (reader.find("vectors") == nullptr) {
    if (type != ElementType::u8 || !state.codec.is_exact())
      fail(ErrorCode::corrupt, "{}: it has no section 'vectors', and its codes are not the vectors", source);
    return {state.codes.data(), type, state.rows(), dim, state.codes.cols()};
  }
  const auto all = reader.section("vectors").rows<std::uint8_t>();
  check_shape(all.rows() == state.rows() && all.cols() == dim * element_size(type), "vectors", source);
  const RowsView vectors(all.data(), type, all.rows(), dim, all.cols());
  check_vectors(context, vectors, source);
  return vectors;
}

}  // namespace

void save(const GraphIndex& index, const std::filesystem::path& path) {
  const State& state = GraphIndexInternals::state_of(index);
  const LostPagesScope lost_pages;
  ContainerWriter writer(path, std::string(search::container_kind));
  writer.set_minor_version(2);
  const search::GraphDefaults defaults = state.current_defaults();
  const std::optional<GraphCalibration> calibration = index.calibration();
  Json codes = {
      {"offsets", state.codec.offsets}, {"step", state.codec.step}, {"max_norm", state.codec.max_norm}};
  if (state.codec.has_nibbles()) {
    codes["nibble_offsets"] = state.codec.nibble_offsets;
    codes["nibble_step"] = state.codec.nibble_step;
  }
  Json metadata = {{"metric", name(index.metric())},
                   {"dim", index.dim()},
                   {"element_type", name(index.element_type())},
                   {"beam", defaults.beam},
                   {"beam_of_100", defaults.beam_of_100},
                   {"evaluates_beam", defaults.evaluates_beam},
                   {"codes", codes},
                   {"provenance", index.provenance()}};
  if (calibration) metadata["calibration"] = describe(*calibration);
  writer.write_metadata(metadata);
  writer.write_section("codes", state.codes);
  if (state.nibbles.rows() != 0) writer.write_section("nibbles", state.nibbles);
  writer.write_section("edges", state.edges);
  const EntryTreeView entries = state.entries.view();
  writer.write_section("entry_tops", entries.top_codes);
  writer.write_section("entry_ends",
                       MatrixView<const std::uint32_t>(entries.ends.data(), entries.ends.size(), 1));
  writer.write_section("entry_rows",
                       MatrixView<const std::uint32_t>(entries.rows.data(), entries.rows.size(), 1));
  if (!state.keeps_vectors_as_codes())
    writer.write_section("vectors",
                         MatrixView<const std::uint8_t>(
                             reinterpret_cast<const std::uint8_t*>(state.vectors.data()), state.rows(),
                             index.dim() * element_size(index.element_type()), state.vectors.stride_bytes()));
  if (!state.ids.empty())
    writer.write_section("ids", MatrixView<const Id>(state.ids.data(), state.ids.size(), 1));
  check_lost_pages();
  writer.commit();
}

GraphIndex load_graph_index(const Context& context, const std::filesystem::path& path) {
  const CancellationScope cancellation(context);
  const LostPagesScope lost_pages;
  const auto reader = std::make_shared<const ContainerReader>(ContainerReader::open(path));
  const std::string& source = reader->source();
  reader->expect(search::container_kind, {"metadata", "codes", "nibbles", "edges", "entry_tops", "entry_ends",
                                          "entry_rows", "vectors", "ids"});
  reader->verify();
  const Json metadata = reader->metadata();
  auto state = std::make_unique<State>();
  state->codec = read_codec(metadata, source);
  state->budget = context.state().budget;
  state->file = reader;
  state->defaults.beam = read_number(metadata, "beam", source);
  state->defaults.beam_of_100 = read_number(metadata, "beam_of_100", source);
  const auto evaluates_beam = metadata.find("evaluates_beam");
  if (evaluates_beam == metadata.end() || !evaluates_beam->is_boolean())
    fail(ErrorCode::corrupt, "{}: metadata: a boolean 'evaluates_beam' expected", source);
  state->defaults.evaluates_beam = *evaluates_beam;
  state->calibration = read_calibration(metadata, source);
  if (state->calibration) state->calibration->evaluates_beam = state->defaults.evaluates_beam;
  state->provenance = read_provenance(metadata, source);

  state->codes = reader->section("codes").rows<std::uint8_t>();
  const std::size_t rows = state->codes.rows();
  check_shape(rows >= 1 && rows <= INT32_MAX && state->codes.cols() == state->codec.row_bytes(), "codes",
              source);
  const search::GraphDefaults& defaults = state->defaults;
  if (defaults.beam < 1 || defaults.beam > INT32_MAX || defaults.beam_of_100 < 1 ||
      defaults.beam_of_100 > INT32_MAX)
    fail(ErrorCode::corrupt, "{}: metadata: beams of 1 to {} expected, {} and {} found", source, INT32_MAX,
         defaults.beam, defaults.beam_of_100);
  if (state->codec.has_nibbles()) {
    state->nibbles = reader->section("nibbles").rows<std::uint8_t>();
    check_shape(state->nibbles.rows() == rows && state->nibbles.cols() == state->codec.nibble_row_bytes(),
                "nibbles", source);
  }
  state->edges = reader->section("edges").rows<std::int32_t>();
  check_shape(state->edges.rows() == rows && state->edges.cols() >= degree_granule &&
                  state->edges.cols() % degree_granule == 0,
              "edges", source);
  check_edges(state->edges, source);
  state->entries = read_entries(*reader, state->codes);
  state->vectors = read_vectors(context, *reader, metadata, *state);
  if (reader->find("ids") != nullptr) {
    const MatrixView<const Id> ids = reader->section("ids").rows<Id>();
    check_shape(ids.rows() == rows && ids.cols() == 1, "ids", source);
    state->ids = {ids.data(), ids.rows()};
    check_ids(state->ids, source);
  }
  check_lost_pages();
  state->prepare(context);
  return GraphIndexInternals::make(std::move(state));
}

}  // namespace nearwise
