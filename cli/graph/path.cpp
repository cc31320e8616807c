// nearwise graph path: the smoothest path between two vectors of a graph.
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/graph/graph_file.h"
#include "cli/shared/command.h"
#include "nearwise/graph/smoothest_path.h"

namespace nearwise::cli {
namespace {

struct PathArguments {
  std::filesystem::path graph;
  std::size_t start = 0;
  std::size_t end = 0;
};

ExitCode run_path(Session& session, const PathArguments& arguments) {
  const KnnGraph graph = open_graph_or_neighbors(arguments.graph);
  for (const auto& [name, row] : {std::pair("start", arguments.start), std::pair("end", arguments.end)})
    if (row >= graph.rows())
      refuse(session, "{} must be a row of '{}', from 0 to {}, got {}", name, arguments.graph.string(),
             graph.rows() - 1, row);
  const std::optional<SmoothestPath> path =
      smoothest_path(graph, static_cast<Id>(arguments.start), static_cast<Id>(arguments.end));
  session.interrupt->check();
  if (session.json) {
    Json json = {{"start", arguments.start},
                 {"end", arguments.end},
                 {"metric", name(graph.metric)},
                 {"found", path.has_value()},
                 {"rows", path ? Json(path->rows) : Json::array()},
                 {"distances", path ? Json(path->distances) : Json::array()},
                 {"widest", nullptr}};
    if (path && path->widest) json["widest"] = *path->widest;
    print(json);
  } else if (!path) {
    print(fmt::format("no path: the graph does not connect {} and {}\n", arguments.start, arguments.end));
  } else {
    std::string text = fmt::format("{}\n", path->rows.front());
    for (std::size_t i = 0; i < path->distances.size(); ++i)
      text += fmt::format("{}  {:.6g}\n", path->rows[i + 1], path->distances[i]);
    print(text);
    if (path->widest)
      remark(session, fmt::format("{} steps, the widest {:.6g}", path->distances.size(), *path->widest));
  }
  return ExitCode::ok;
}

}  // namespace

void add_graph_path(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_path, "path", "Find the smoothest path between two vectors",
      "  nearwise graph path graph.nw 17 4711\n\n"
      "The path whose longest step is as short as possible. Prints a line per vector: its row, and its\n"
      "distance from the one before.");
  add_path(parser, "graph", arguments.graph, "Graph: .nw of graph build, or of knn --exclude-self")
      ->required();
  add_count(parser, "start", arguments.start, 0, "Row of the first vector")->required();
  add_count(parser, "end", arguments.end, 0, "Row of the last vector")->required();
}

}  // namespace nearwise::cli
