// nearwise graph export: a graph as a sparse matrix of SciPy.
#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/graph/graph_file.h"
#include "cli/shared/command.h"
#include "nearwise/graph/graph_export.h"
#include "nearwise/graph/graph_structure.h"

namespace nearwise::cli {
namespace {

struct ExportArguments {
  std::filesystem::path graph;
  std::filesystem::path output;
  bool mutual = false;
};

ExitCode run_export(Session& session, const ExportArguments& arguments) {
  if (arguments.output.extension() != ".npz")
    refuse(session, "a sparse matrix must go to an .npz file, got '{}'", arguments.output.string());
  check_output(session, arguments.output, {arguments.graph});
  const KnnGraph graph = open_graph_or_neighbors(arguments.graph);
  std::optional<RangeNeighbors> mutual;
  if (arguments.mutual) mutual = mutual_neighbors(graph);
  session.interrupt->check();
  const Interrupt::Protection protection = session.interrupt->protect();
  std::size_t entries = graph.rows() * std::min(graph.degree(), graph.rows() - 1);
  if (mutual) {
    entries = mutual->ids.size();
    save_csr(*mutual, graph.rows(), arguments.output);
  } else {
    save_csr(graph, arguments.output);
  }
  conclude(session,
           {{"rows", graph.rows()},
            {"entries", entries},
            {"metric", name(graph.metric)},
            {"mutual", arguments.mutual},
            {"output", arguments.output.string()}},
           fmt::format("wrote {} x {} with {} entries to {}", graph.rows(), graph.rows(), entries,
                       arguments.output.string()));
  return ExitCode::ok;
}

}  // namespace

void add_graph_export(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_export, "export", "Write a graph as a sparse matrix for SciPy",
                  "  nearwise graph export graph.nw -o graph.npz\n\n"
                  "scipy.sparse.load_npz reads it: compressed sparse rows (CSR) with distances as entries.");
  add_path(parser, "graph", arguments.graph, "Graph: .nw of graph build, or of knn --exclude-self")
      ->required();
  add_output(parser, arguments.output, "Matrix to write: .npz");
  parser.add_flag("--mutual", arguments.mutual,
                  "Only edges between vectors that are each other's neighbours");
}

}  // namespace nearwise::cli
