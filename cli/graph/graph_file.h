// Graph files: opened, and written with a report.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/shared/files.h"
#include "cli/shared/search_report.h"
#include "cli/shared/session.h"
#include "cli/shared/work.h"
#include "nearwise/graph/knn_graph.h"

namespace nearwise::cli {

std::string sentence(const RecallEstimate& recall);

// target_recall, recall, reached and rounds of a build.
Json describe_report(const GraphReport& report, double target_recall);
void warn_if_missed(const Session& session, const GraphReport& report, double target_recall);

// A .nw file of another kind, or another suffix, is Error(invalid_argument).
KnnGraph open_graph(const std::filesystem::path& path);
// Also accepts the neighbours that `knn --exclude-self` wrote to a .nw file; others are InvalidData.
KnnGraph open_graph_or_neighbors(const std::filesystem::path& path);

// A command that makes a graph of `vectors`.
struct GraphRun {
  Session& session;
  const Context& context;
  RowsView vectors;
  std::filesystem::path output;
  double target_recall = 0;
  std::size_t seed = 0;
  Provenance provenance;
};

// Runs make(context, on_round) with a remark per round, writes the graph and reports it.
using OnRound = std::function<void(const GraphRound&)>;
ExitCode make_graph(const GraphRun& run, const std::function<KnnGraph(const Context&, const OnRound&)>& make);

}  // namespace nearwise::cli
