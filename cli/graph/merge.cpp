// nearwise graph merge: one graph of two.
#include "cli/commands.h"
#include "cli/graph/update.h"
#include "cli/shared/command.h"

namespace nearwise::cli {
namespace {

struct MergeArguments {
  std::filesystem::path left;
  std::filesystem::path right;
  GraphUpdateArguments update;
};

ExitCode run_merge(Session& session, const MergeArguments& arguments) {
  const KnnGraph left = open_graph(arguments.left);
  const KnnGraph right = open_graph(arguments.right);
  return run_graph_update(session, arguments.update, {.count = left.rows() + right.rows()},
                          [&](const Context& context, RowsView rows, const KnnGraphChangeOptions& options) {
                            return merge_knn_graphs(context, rows, left, right, options);
                          });
}

}  // namespace

void add_graph_merge(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_merge, "merge", "Merge the graphs of two sets of vectors",
                  "  nearwise graph merge left.nw right.nw left.fbin right.fbin -o all.nw\n\n"
                  "Ids of the second graph are increased by the number of vectors of the first.");
  add_path(parser, "left", arguments.left, "First graph: .nw")->required();
  add_path(parser, "right", arguments.right, "Second graph: .nw")->required();
  add_graph_update_options(parser, arguments.update,
                           "Vectors of the first graph, then of the second, in one file or several");
}

}  // namespace nearwise::cli
