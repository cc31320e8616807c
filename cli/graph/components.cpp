// nearwise graph components: the connected components of a graph.
#include "cli/commands.h"
#include "cli/graph/graph_file.h"
#include "cli/graph/row_groups.h"
#include "cli/shared/command.h"

namespace nearwise::cli {
namespace {

struct ComponentsArguments {
  std::filesystem::path graph;
  std::filesystem::path output;
};

ExitCode run_components(Session& session, const ComponentsArguments& arguments) {
  check_labels_output(session, arguments.output, arguments.graph);
  const KnnGraph graph = open_graph_or_neighbors(arguments.graph);
  return report_groups(session, graph, connected_components(graph), arguments.output, "components",
                       Json::object());
}

}  // namespace

void add_graph_components(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_components, "components", "Find the connected components of a graph",
                  "  nearwise graph components graph.nw -o labels.npy");
  add_path(parser, "graph", arguments.graph, "Graph: .nw of graph build, or of knn --exclude-self")
      ->required();
  add_labels_output(parser, arguments.output);
}

}  // namespace nearwise::cli
