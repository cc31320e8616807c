// nearwise graph add: more vectors in a graph.
#include "cli/commands.h"
#include "cli/graph/update.h"
#include "cli/shared/command.h"

namespace nearwise::cli {
namespace {

struct AddArguments {
  std::filesystem::path graph;
  GraphUpdateArguments update;
};

ExitCode run_add(Session& session, const AddArguments& arguments) {
  const KnnGraph graph = open_graph(arguments.graph);
  return run_graph_update(session, arguments.update, {.count = graph.rows(), .or_more = true},
                          [&](const Context& context, RowsView rows, const KnnGraphChangeOptions& options) {
                            return add_to_knn_graph(context, rows, graph, options);
                          });
}

}  // namespace

void add_graph_add(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_add, "add", "Add vectors to a graph",
                  "  nearwise graph add graph.nw base.fbin more.fbin -o graph.nw\n\n"
                  "New vectors are numbered after those of the graph.");
  add_path(parser, "graph", arguments.graph, "Graph: .nw")->required();
  add_graph_update_options(parser, arguments.update,
                           "Vectors of the graph, then the new ones, in one file or several");
}

}  // namespace nearwise::cli
