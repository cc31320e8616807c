// nearwise graph duplicates: groups of vectors connected by short edges.
#include "cli/commands.h"
#include "cli/graph/graph_file.h"
#include "cli/graph/row_groups.h"
#include "cli/shared/command.h"

namespace nearwise::cli {
namespace {

struct DuplicatesArguments {
  std::filesystem::path graph;
  std::filesystem::path output;
  double distance = 0;
};

ExitCode run_duplicates(Session& session, const DuplicatesArguments& arguments) {
  check_labels_output(session, arguments.output, arguments.graph);
  const KnnGraph graph = open_graph_or_neighbors(arguments.graph);
  return report_groups(session, graph, near_duplicates(graph, static_cast<float>(arguments.distance)),
                       arguments.output, "groups of near duplicates", {{"distance", arguments.distance}});
}

}  // namespace

void add_graph_duplicates(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_duplicates, "duplicates", "Find groups of near-duplicate vectors",
                  "  nearwise graph duplicates graph.nw --distance 0.01 -o labels.npy\n\n"
                  "A group is connected by edges of at most that distance (inner_product: at least).");
  add_path(parser, "graph", arguments.graph, "Graph: .nw of graph build, or of knn --exclude-self")
      ->required();
  add_number(parser, "--distance", arguments.distance, "Longest edge, in the unit of the graph's metric")
      ->required()
      ->default_str("");
  add_labels_output(parser, arguments.output);
}

}  // namespace nearwise::cli
