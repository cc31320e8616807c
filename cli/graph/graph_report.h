// Graphs as commands take and leave them: loaded, with words for their rounds, and reported when they have been written.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"
#include "nearwise/knn_graph.h"

namespace nearwise::cli {

Json to_json(const RecallEstimate& recall);
std::string sentence(const RecallEstimate& recall);

// --recall must be above 0 and at most 1, and the output a .nw file. Throws in the command's name.
void check_graph_arguments(const std::string& command, double recall, const std::filesystem::path& output);

// A .nw file of another kind, or of another suffix, is Error(invalid_argument).
KnnGraph open_graph(const std::filesystem::path& path);

// What a command that makes a graph was told and has used.
struct GraphRun {
  Session& session;
  std::filesystem::path output;
  double recall = 0;
  std::size_t seed = 0;
  const MachineArguments& machine;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

// A remark for every round.
std::function<void(const GraphRound&)> tell_rounds(const GraphRun& run, ProgressBar& bar);

// Writes the graph; `more` is added to the JSON.
ExitCode finish_graph(const GraphRun& run, const Context& context, std::size_t dim, const KnnGraph& graph,
                      const Provenance& provenance, const Json& more = Json::object());

}  // namespace nearwise::cli
