// Graphs in containers (docs/format.md, kind "graph").
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "io/container_reader.h"
#include "io/container_writer.h"
#include "nearwise/knn_graph.h"

namespace nearwise {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kind = "graph";

Json encode(const RecallEstimate& recall) {
  return {{"value", recall.value}, {"low", recall.low}, {"high", recall.high}, {"rows", recall.rows}};
}

// Throws nlohmann's exceptions, as all of these do.
RecallEstimate decode_recall(const Json& json) {
  const auto share = [&](const char* key) {
    if (!json.at(key).is_number()) throw std::out_of_range("a number expected");
    return json.at(key).get<double>();
  };
  if (!json.at("rows").is_number_unsigned()) throw std::out_of_range("a whole number expected");
  const RecallEstimate recall = {.value = share("value"),
                                 .low = share("low"),
                                 .high = share("high"),
                                 .rows = json.at("rows").get<std::size_t>()};
  if (!(0 <= recall.low && recall.low <= recall.value && recall.value <= recall.high && recall.high <= 1))
    throw std::out_of_range("shares in the order low, value, high expected");
  return recall;
}

GraphMethod decode_method(const std::string& text) {
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::descent})
    if (text == name(method)) return method;
  throw std::out_of_range("method exact or descent expected");
}

GraphReport decode_report(const Json& metadata) {
  GraphReport report = {.method = decode_method(metadata.at("method").get<std::string>()),
                        .recall = decode_recall(metadata.at("recall")),
                        .reached = metadata.at("reached").get<bool>(),
                        .rounds = {}};
  for (const Json& round : metadata.at("rounds")) {
    if (!round.at("updates").is_number_unsigned()) throw std::out_of_range("a whole number expected");
    report.rounds.push_back({.round = report.rounds.size(),
                             .updates = round.at("updates").get<std::uint64_t>(),
                             .recall = decode_recall(round.at("recall"))});
  }
  return report;
}

template <typename T>
Matrix<T> copy_of(MatrixView<const T> values) {
  Matrix<T> copy(values.rows(), values.cols());
  std::copy_n(values.data(), values.rows() * values.cols(), copy.data());
  return copy;
}

}  // namespace

void save(const KnnGraph& graph, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance) {
  require(graph.rows() >= 1 && graph.degree() >= 1,
          "save {}: at least 1 row and 1 neighbour expected, given [{}, {}]", path.native(), graph.rows(),
          graph.degree());
  try {
    graph.validate();
  } catch (const Error& error) {
    fail(ErrorCode::invalid_argument, "save {}: {}", path.native(), error.what());
  }
  Json rounds = Json::array();
  for (const GraphRound& round : graph.report.rounds)
    rounds.push_back({{"updates", round.updates}, {"recall", encode(round.recall)}});
  ContainerWriter writer(path, std::string(kind));
  writer.write_metadata({{"metric", name(graph.metric)},
                         {"method", name(graph.report.method)},
                         {"reached", graph.report.reached},
                         {"recall", encode(graph.report.recall)},
                         {"rounds", rounds},
                         {"provenance", provenance}});
  writer.write_section("ids", graph.neighbors.ids.view());
  writer.write_section("distances", graph.neighbors.distances.view());
  writer.commit();
}

KnnGraph load_knn_graph(const std::filesystem::path& path) {
  const ContainerReader reader = ContainerReader::open(path);
  reader.expect(kind, {"metadata", "ids", "distances"});
  reader.verify();
  KnnGraph graph;
  const Json metadata = reader.metadata();
  try {
    graph.metric = parse_metric(metadata.at("metric").get<std::string>());
    graph.report = decode_report(metadata);
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
    fail(ErrorCode::corrupt, "{}: {}", reader.source(), error.what());
  }
  return graph;
}

}  // namespace nearwise
