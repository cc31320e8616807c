#include "graph/metadata.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace nearwise::graph {

using Json = nlohmann::json;

nlohmann::json encode(const RecallEstimate& recall) {
  return {{"value", recall.value}, {"low", recall.low}, {"high", recall.high}, {"rows", recall.rows}};
}

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
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::nn_descent})
    if (text == name(method)) return method;
  throw std::out_of_range("expected method exact or nn_descent");
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

Json encode_metadata(Metric metric, const GraphReport& report,
                     const std::map<std::string, std::string>& provenance) {
  Json rounds = Json::array();
  for (const GraphRound& round : report.rounds)
    rounds.push_back({{"updates", round.updates}, {"recall", encode(round.recall)}});
  return {{"metric", name(metric)},    {"method", name(report.method)},
          {"reached", report.reached}, {"recall", encode(report.recall)},
          {"rounds", rounds},          {"provenance", provenance}};
}

}  // namespace nearwise::graph
