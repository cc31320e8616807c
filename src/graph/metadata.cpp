#include "graph/metadata.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "io/container/metadata.h"

namespace nearwise::graph {

using Json = nlohmann::json;

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
