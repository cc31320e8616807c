#include "graph_index/graph_sections.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/check.h"

namespace nearwise::graph_index {
namespace {

using Json = nlohmann::json;

constexpr std::size_t checked_rows = 1 << 14;  // between two checks for cancellation

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

}  // namespace

Json describe_codec(const ScalarCodec& codec) {
  Json codes = {{"offsets", codec.offsets}, {"step", codec.step}, {"max_norm", codec.max_norm}};
  if (codec.has_nibbles()) {
    codes["nibble_offsets"] = codec.nibble_offsets;
    codes["nibble_step"] = codec.nibble_step;
  }
  return {{"metric", name(codec.metric)}, {"dim", codec.dim}, {"codes", codes}};
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

void check_edges(MatrixView<const std::int32_t> edges, std::size_t rows, const std::string& source) {
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    if (row % checked_rows == 0) check_cancelled();
    bool is_ended = false;
    for (const std::int32_t target : edges.row(row)) {
      const bool is_row = target >= 0 && static_cast<std::size_t>(target) < rows;
      if ((target != no_edge && !is_row) || (is_ended && is_row))
        fail(ErrorCode::corrupt,
             "{}: edges, row {}: {} is not a row of the index or follows the end of the list", source, row,
             target);
      is_ended = is_ended || target == no_edge;
    }
  }
}

EntryTree read_entries(const ContainerReader& reader, MatrixView<const std::uint8_t> codes) {
  const std::string& source = reader.source();
  const auto top_codes = reader.section("entry_tops").rows<std::uint8_t>();
  const auto ends = reader.section("entry_ends").rows<std::uint32_t>();
  const auto rows = reader.section("entry_rows").rows<std::uint32_t>();
  const std::size_t least = std::min<std::size_t>(codes.rows(), 1);
  check_shape(top_codes.rows() >= least && top_codes.cols() == codes.cols(), "entry_tops", source);
  check_shape(ends.rows() == top_codes.rows() && ends.cols() == 1, "entry_ends", source);
  check_shape(rows.rows() >= least && rows.cols() == 1 && rows.rows() <= codes.rows(), "entry_rows", source);
  std::vector<std::uint32_t> all_ends(ends.data(), ends.data() + ends.rows());
  std::vector<std::uint32_t> all_rows(rows.data(), rows.data() + rows.rows());
  if (!std::ranges::is_sorted(all_ends) || (all_ends.empty() ? 0 : all_ends.back()) != all_rows.size())
    fail(ErrorCode::corrupt, "{}: entry_ends: ascending numbers up to {} expected", source, all_rows.size());
  for (const std::uint32_t row : all_rows)
    if (row >= codes.rows())
      fail(ErrorCode::corrupt, "{}: entry_rows: 0 to {} expected, {} found", source, codes.rows() - 1, row);
  return {codes, copy_of(top_codes), std::move(all_ends), std::move(all_rows)};
}

void write_entries(ContainerWriter& writer, const EntryTreeView& entries, std::size_t row_bytes) {
  writer.write_section("entry_tops", MatrixView<const std::uint8_t>(entries.top_codes.data(),
                                                                    entries.top_codes.rows(), row_bytes));
  writer.write_section("entry_ends",
                       MatrixView<const std::uint32_t>(entries.ends.data(), entries.ends.size(), 1));
  writer.write_section("entry_rows",
                       MatrixView<const std::uint32_t>(entries.rows.data(), entries.rows.size(), 1));
}

}  // namespace nearwise::graph_index
