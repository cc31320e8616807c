#include "graph/metadata.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/checked.h"
#include "io/container/metadata.h"

namespace nearwise::graph {

using Json = nlohmann::json;

GraphMethod decode_method(const std::string& text) {
  for (const GraphMethod method : {GraphMethod::exact, GraphMethod::nn_descent})
    if (text == name(method)) return method;
  throw std::out_of_range("expected method exact or nn_descent");
}

GraphReport decode_report(const Json& metadata, std::size_t rows) {
  GraphReport report = {.method = decode_method(metadata.at("method").get<std::string>()),
                        .recall = decode_recall(metadata.at("recall"), rows),
                        .reached = metadata.at("reached").get<bool>(),
                        .rounds = {}};
  const Json& rounds = metadata.at("rounds");
  if (rounds.size() > max_rounds)
    throw std::out_of_range(fmt::format("at most {} rounds expected, {} found", max_rounds, rounds.size()));
  // A plan may add a neighbour of a row twice.
  const std::uint64_t most_updates = bounded_product<std::uint64_t>(
      bounded_product<std::uint64_t>(rows, rows, most_metadata_number), 2, most_metadata_number);
  for (const Json& round : rounds) {
    if (!round.at("updates").is_number_unsigned()) throw std::out_of_range("a whole number expected");
    const auto updates = round.at("updates").get<std::uint64_t>();
    if (updates > most_updates)
      throw std::out_of_range(fmt::format("at most {} updates expected, {} found", most_updates, updates));
    report.rounds.push_back({.round = report.rounds.size(),
                             .updates = updates,
                             .recall = decode_recall(round.at("recall"), rows)});
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
