// Graphs in containers (docs/format.md, kind "graph").
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/check.h"
#include "graph/metadata.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "nearwise/graph/knn_graph.h"

namespace nearwise {
void save(const KnnGraph& graph, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance) {
  require(graph.rows() >= 1 && graph.degree() >= 1,
          "save {}: at least 1 row and 1 neighbour expected, got [{}, {}]", path.native(), graph.rows(),
          graph.degree());
  try {
    graph.validate();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    fail(ErrorCode::invalid_argument, "save {}: {}", path.native(), error.what());
  }
  const nlohmann::json metadata = graph::encode_metadata(graph.metric, graph.report, provenance);
  try {
    static_cast<void>(graph::decode_report(metadata, graph.rows()));  // or it could not be loaded
  } catch (const std::out_of_range& error) {
    fail(ErrorCode::invalid_argument, "save {}: report: {}", path.native(), error.what());
  }
  ContainerWriter writer(path, std::string(graph::container_kind));
  writer.write_metadata(metadata);
  writer.write_section("ids", graph.neighbors.ids.view());
  writer.write_section("distances", graph.neighbors.distances.view());
  writer.commit();
}

KnnGraph load_knn_graph(const std::filesystem::path& path) {
  const LostPagesScope lost_pages;
  const ContainerReader reader = ContainerReader::open(path);
  reader.expect(graph::container_kind, {"metadata", "ids", "distances"});
  reader.verify();
  KnnGraph graph;
  const nlohmann::json metadata = reader.metadata();
  const std::size_t rows = reader.section("ids").info().rows;
  try {
    graph.metric = parse_metric(metadata.at("metric").get<std::string>());
    graph.report = graph::decode_report(metadata, rows);
    static_cast<void>(metadata.at("provenance").get<std::map<std::string, std::string>>());
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", reader.source(), error.what());
  }
  graph.neighbors.ids = copy_of(reader.section("ids").rows<Id>());
  graph.neighbors.distances = copy_of(reader.section("distances").rows<float>());
  if (graph.rows() == 0 || graph.degree() == 0)
    fail(ErrorCode::corrupt, "{}: at least 1 row and 1 neighbour expected, [{}, {}] found", reader.source(),
         graph.rows(), graph.degree());
  try {
    graph.validate();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    fail(ErrorCode::corrupt, "{}: {}", reader.source(), error.what());
  }
  return graph;
}

}  // namespace nearwise
