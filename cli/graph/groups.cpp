// nearwise graph components and duplicates: groups of vectors, printed and written as labels.
#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "cli/commands.h"
#include "cli/graph/graph_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "nearwise/graph/graph_structure.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

constexpr std::size_t groups_shown = 10;

struct GroupArguments {
  std::filesystem::path graph;
  std::filesystem::path output;  // empty: no labels are written
  double distance = 0;           // of duplicates
};

void add_labels_output(CLI::App& parser, std::filesystem::path& output) {
  add_output(parser, output, "Write the group of every vector, -1 for none: .npy, .ivecs or .ibin")
      ->required(false);
}

KnnGraph open_grouped(const Session& session, const GroupArguments& arguments) {
  const std::filesystem::path& output = arguments.output;
  if (!output.empty()) {
    require_suffix_for(Content::neighbors, output);
    if (is_container(output) || suffix_text(output) == ".bin")
      refuse(session, "labels must go to .npy, .ivecs or .ibin, got '{}'", output.string());
    check_output(session, output, {arguments.graph});
  }
  return open_graph_or_neighbors(arguments.graph);
}

// `noun` names the groups; `more` is added to the JSON.
ExitCode report_groups(const Session& session, const GroupArguments& arguments, const KnnGraph& graph,
                       const RowGroups& groups, const std::string& noun, const Json& more) {
  session.interrupt->check();
  if (!arguments.output.empty()) {
    Neighbors labels = {Matrix<Id>(groups.labels.size(), 1), {}};
    std::ranges::copy(groups.labels, labels.ids.data());
    const Interrupt::Protection protection = session.interrupt->protect();
    write_neighbors(arguments.output, labels);
  }
  std::vector<std::size_t> sizes = groups.sizes;
  std::ranges::sort(sizes, std::greater<>());
  const std::size_t grouped = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  sizes.resize(std::min(sizes.size(), groups_shown));
  if (session.json) {
    Json json = {{"rows", graph.rows()},
                 {"metric", name(graph.metric)},
                 {"groups", groups.sizes.size()},
                 {"rows_in_groups", grouped},
                 {"largest", sizes}};
    json.update(more);
    if (!arguments.output.empty()) json["output"] = arguments.output.string();
    print(json);
  } else {
    print(fmt::format("{} {}, {} of {} vectors, the largest: {}\n", groups.sizes.size(), noun, grouped,
                      graph.rows(), fmt::join(sizes, " ")));
  }
  return ExitCode::ok;
}

ExitCode run_components(Session& session, const GroupArguments& arguments) {
  const KnnGraph graph = open_grouped(session, arguments);
  return report_groups(session, arguments, graph, connected_components(graph), "components", Json::object());
}

ExitCode run_duplicates(Session& session, const GroupArguments& arguments) {
  const KnnGraph graph = open_grouped(session, arguments);
  return report_groups(session, arguments, graph,
                       near_duplicates(graph, static_cast<float>(arguments.distance)),
                       "groups of near duplicates", {{"distance", arguments.distance}});
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
