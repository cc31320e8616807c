#include "nearwise/storage.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/check.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "io/container/names_container.h"
#include "io/container/neighbors_container.h"

namespace nearwise {
namespace {

using Json = nlohmann::json;

// The rules for values, the same when saving and when loading: what was saved can be loaded.
// `code` says whose fault it is.
void check_values(MatrixView<const Id> ids, MatrixView<const float> distances, const std::string& source,
                  ErrorCode code) {
  constexpr std::size_t checked_rows = 4096;
  for (std::size_t row = 0; row < ids.rows(); ++row) {
    if (row % checked_rows == 0) check_cancelled();
    for (const Id id : ids.row(row))
      if (id < no_id) fail(code, "{}: ids, row {}: {} or larger expected, {} found", source, row, no_id, id);
    for (const float distance : distances.row(row))
      if (std::isnan(distance))
        fail(code, "{}: distances, row {}: a number expected, NaN found", source, row);
  }
}

Metric decode_metric(const Json& metadata, const std::string& source) {
  const auto metric = metadata.find("metric");
  if (metric == metadata.end() || !metric->is_string())
    fail(ErrorCode::corrupt, "{}: metadata: a text 'metric' expected", source);
  try {
    return parse_metric(metric->get_ref<const std::string&>());
  } catch (const Error& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", source, error.what());
  }
}

}  // namespace

NeighborsContent check_neighbors(const ContainerReader& reader) {
  const LostPagesScope lost_pages;
  reader.expect(neighbors_kind, {"metadata", "ids", "distances"});
  reader.verify();
  NeighborsContent content;
  content.ids = reader.section("ids").rows<Id>();
  content.distances = reader.section("distances").rows<float>();
  if (content.ids.rows() != content.distances.rows() || content.ids.cols() != content.distances.cols())
    fail(ErrorCode::corrupt, "{}: ids and distances of one shape expected, [{}, {}] and [{}, {}] found",
         reader.source(), content.ids.rows(), content.ids.cols(), content.distances.rows(),
         content.distances.cols());
  check_values(content.ids, content.distances, reader.source(), ErrorCode::corrupt);
  const Json metadata = reader.metadata();
  content.metric = decode_metric(metadata, reader.source());
  content.provenance = read_provenance(metadata, reader.source());
  check_lost_pages();
  return content;
}

SavedNeighbors decode_neighbors(const ContainerReader& reader) {
  const LostPagesScope lost_pages;
  NeighborsContent content = check_neighbors(reader);
  SavedNeighbors result;
  result.metric = content.metric;
  result.provenance = std::move(content.provenance);
  result.neighbors.ids = copy_of(content.ids);
  result.neighbors.distances = copy_of(content.distances);
  return result;
}

ContainerInfo describe(const ContainerReader& reader) {
  ContainerInfo info;
  const container::Header& header = reader.header();
  info.kind = header.kind;
  info.version_major = header.version_major;
  info.version_minor = header.version_minor;
  info.bytes = header.file_bytes;
  info.metadata = flatten_metadata(reader.metadata());
  for (const container::Section& section : reader.sections())
    info.sections.push_back({.name = section.name,
                             .element = std::string(container::name(section.element)),
                             .rows = section.rows,
                             .columns = section.columns,
                             .offset = section.offset,
                             .bytes = section.bytes,
                             .blocks = section.blocks});
  return info;
}

void save(const SavedNeighbors& result, const std::filesystem::path& path) {
  const Matrix<Id>& ids = result.neighbors.ids;
  const Matrix<float>& distances = result.neighbors.distances;
  const std::string operation = "save " + path.native();
  require(ids.rows() == distances.rows() && ids.cols() == distances.cols(),
          "{}: ids and distances of one shape expected, got [{}, {}] and [{}, {}]", operation, ids.rows(),
          ids.cols(), distances.rows(), distances.cols());
  require(ids.cols() >= 1, "{}: at least one neighbour per query expected, got 0", operation);
  check_values(ids, distances, operation, ErrorCode::invalid_argument);
  const Json metadata = {{"metric", name(result.metric)}, {"provenance", result.provenance}};

  ContainerWriter writer(path, std::string(neighbors_kind));
  writer.write_metadata(metadata);
  writer.write_section("ids", ids.view());
  writer.write_section("distances", distances.view());
  writer.commit();
}

SavedNeighbors load_neighbors(const std::filesystem::path& path) {
  return decode_neighbors(ContainerReader::open(path));
}

ContainerInfo inspect(const std::filesystem::path& path) { return describe(ContainerReader::open(path)); }

ContainerInfo verify(const std::filesystem::path& path) {
  const ContainerReader reader = ContainerReader::open(path);
  reader.verify();
  // The kinds this layer knows are also checked for what checksums cannot tell.
  if (reader.header().kind == neighbors_kind) check_neighbors(reader);
  if (reader.header().kind == names_kind) check_names(reader);
  return describe(reader);
}

}  // namespace nearwise
