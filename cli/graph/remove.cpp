// nearwise graph remove: a graph without some of its vectors.
#include <vector>

#include "cli/commands.h"
#include "cli/graph/update.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"

namespace nearwise::cli {
namespace {

struct RemoveArguments {
  std::filesystem::path graph;
  std::filesystem::path ids;
  GraphUpdateArguments update;
};

ExitCode run_remove(Session& session, const RemoveArguments& arguments) {
  const KnnGraph graph = open_graph(arguments.graph);
  const std::vector<Id> ids = read_ids(arguments.ids);
  return run_graph_update(session, arguments.update, {.count = graph.rows()},
                          [&](const Context& context, RowsView rows, const KnnGraphChangeOptions& options) {
                            return remove_from_knn_graph(context, rows, graph, ids, options);
                          });
}

}  // namespace

void add_graph_remove(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_remove, "remove", "Remove vectors from a graph",
                  "  nearwise graph remove graph.nw ids.txt base.fbin -o smaller.nw\n\n"
                  "The remaining vectors keep their order and are renumbered from 0.");
  add_path(parser, "graph", arguments.graph, "Graph: .nw")->required();
  add_path(parser, "ids", arguments.ids,
           "Row numbers to remove: .npy .ivecs .ibin, or .txt with one per line")
      ->required();
  add_graph_update_options(parser, arguments.update, "All vectors of the graph, in one file or several");
}

}  // namespace nearwise::cli
