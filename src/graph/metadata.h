// The metadata of a graph's container (docs/format.md, kind "graph").
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "nearwise/graph/knn_graph.h"

namespace nearwise::graph {

inline constexpr std::string_view container_kind = "graph";

nlohmann::json encode_metadata(Metric metric, const GraphReport& report,
                               const std::map<std::string, std::string>& provenance);

inline constexpr std::size_t max_rounds = 4096;

// rows: of the graph, which bound the numbers of its report. Throws exceptions of nlohmann's or
// std::out_of_range.
GraphReport decode_report(const nlohmann::json& metadata, std::size_t rows);

}  // namespace nearwise::graph
