// nearwise graph path, components, duplicates and export: what a graph is good for once it is built.
#include "cli/graph/graph_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared/files.h"
#include "cli/shared/result_file.h"
#include "nearwise/graph_export.h"
#include "nearwise/graph_structure.h"
#include "nearwise/smoothest_path.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

constexpr std::size_t groups_shown = 10;

struct PathArguments {
  std::filesystem::path graph;
  std::size_t start = 0;
  std::size_t end = 0;
};

struct GroupArguments {
  std::filesystem::path graph;
  std::filesystem::path output;
  std::optional<double> distance;  // none: components
};

struct ExportArguments {
  std::filesystem::path graph;
  std::filesystem::path output;
  bool mutual = false;
};

// A graph, or the neighbours of every row that `knn --exclude-self` left in a container.
KnnGraph read_graph(const std::string& command, const std::filesystem::path& path) {
  if (!is_container(path))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: a graph in a .nw file expected, given '{}'", command, path.string()));
  if (blame_data([&] { return inspect(path).kind; }) == "graph")
    return blame_data([&] { return load_knn_graph(path); });
  SavedNeighbors saved = blame_data([&] { return load_neighbors(path); });
  KnnGraph graph = {.neighbors = std::move(saved.neighbors), .metric = saved.metric, .report = {}};
  try {
    graph.validate();
  } catch (const Error& error) {
    throw InvalidData(
        fmt::format("{}: '{}' has neighbours that are no graph: {}", command, path.string(), error.what()));
  }
  return graph;
}

void check_row(const std::string& name, std::size_t row, const PathArguments& arguments,
               const KnnGraph& graph) {
  if (row >= graph.rows())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("graph path: {} must be a row of '{}', from 0 to {}, given {}", name,
                            arguments.graph.string(), graph.rows() - 1, row));
}

ExitCode run_path(const Session& session, const PathArguments& arguments) {
  const KnnGraph graph = read_graph("graph path", arguments.graph);
  check_row("start", arguments.start, arguments, graph);
  check_row("end", arguments.end, arguments, graph);
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

// Labels as ids of one column, which every format of ids holds.
void write_labels(const std::filesystem::path& path, const std::vector<Id>& labels) {
  Neighbors column = {Matrix<Id>(labels.size(), 1), {}};
  std::ranges::copy(labels, column.ids.data());
  write_neighbors(path, column);
}

void check_label_output(const std::string& command, const GroupArguments& arguments) {
  require_suffix_for(Content::neighbors, arguments.output);
  const std::string suffix = arguments.output.extension().string();
  if (suffix == ".nw" || suffix == ".bin")
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: labels go to .npy, .ivecs or .ibin, given '{}'",
                                                         command, arguments.output.string()));
  check_output(command, arguments.output, {arguments.graph});
}

ExitCode run_groups(const Session& session, const GroupArguments& arguments) {
  const std::string command = arguments.distance ? "graph duplicates" : "graph components";
  if (!arguments.output.empty()) check_label_output(command, arguments);
  const KnnGraph graph = read_graph(command, arguments.graph);
  const RowGroups groups = arguments.distance
                               ? near_duplicates(graph, static_cast<float>(*arguments.distance))
                               : connected_components(graph);
  session.interrupt->check();
  std::vector<std::size_t> sizes = groups.sizes;
  std::ranges::sort(sizes, std::greater<>());
  const std::size_t grouped = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  if (!arguments.output.empty()) {
    const Interrupt::Protection protection = session.interrupt->protect();
    write_labels(arguments.output, groups.labels);
  }
  sizes.resize(std::min(sizes.size(), groups_shown));
  if (session.json) {
    Json json = {{"rows", graph.rows()},
                 {"metric", name(graph.metric)},
                 {"groups", groups.sizes.size()},
                 {"rows_in_groups", grouped},
                 {"largest", sizes}};
    if (arguments.distance) json["distance"] = *arguments.distance;
    if (!arguments.output.empty()) json["output"] = arguments.output.string();
    print(json);
    return ExitCode::ok;
  }
  const std::string_view noun = arguments.distance ? "groups of near duplicates" : "components";
  print(fmt::format("{} {}, {} of {} rows, the largest: {}\n", groups.sizes.size(), noun, grouped,
                    graph.rows(), fmt::join(sizes, " ")));
  return ExitCode::ok;
}

ExitCode run_export(const Session& session, const ExportArguments& arguments) {
  if (arguments.output.extension() != ".npz")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("graph export: a sparse matrix goes to an .npz file, given '{}'",
                            arguments.output.string()));
  check_output("graph export", arguments.output, {arguments.graph});
  const KnnGraph graph = read_graph("graph export", arguments.graph);
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
  if (session.json)
    print(Json{{"rows", graph.rows()},
               {"entries", entries},
               {"metric", name(graph.metric)},
               {"mutual", arguments.mutual},
               {"output", arguments.output.string()}});
  else
    remark(session, fmt::format("wrote {} x {} with {} entries to {}", graph.rows(), graph.rows(), entries,
                                arguments.output.string()));
  return ExitCode::ok;
}

constexpr const char* graph_file = "The graph: .nw of graph build, or of knn --exclude-self";

void add_path_of_graph(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<PathArguments>();
  CLI::App* const command = add_command(
      app, session, "path", "Find the smoothest path between two rows",
      "  nearwise graph path graph.nw 17 4711\n\n"
      "Of all paths the one whose widest step is the least wide. One line for each row, with its\n"
      "distance from the row before.");
  add_path(*command, "graph", arguments->graph, graph_file)->required();
  add_count(*command, "start", arguments->start, 0, "The row to start from")->required();
  add_count(*command, "end", arguments->end, 0, "The row to get to")->required();
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_path(session, *arguments); };
  });
}

void add_output_of_labels(CLI::App& command, GroupArguments& arguments) {
  add_path(command, "-o,--output", arguments.output,
           "Where the group of every row goes: .npy, .ivecs or .ibin");
}

void add_components_of_graph(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<GroupArguments>();
  CLI::App* const command = add_command(app, session, "components", "Find which rows hang together",
                                        "  nearwise graph components graph.nw --output labels.npy");
  add_path(*command, "graph", arguments->graph, graph_file)->required();
  add_output_of_labels(*command, *arguments);
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_groups(session, *arguments); };
  });
}

void add_duplicates_of_graph(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<GroupArguments>();
  auto distance = std::make_shared<double>();
  CLI::App* const command =
      add_command(app, session, "duplicates", "Find groups of rows that are nearly the same",
                  "  nearwise graph duplicates graph.nw --distance 0.01 --output labels.npy\n\n"
                  "Rows are in one group where edges of at most that distance (inner_product: at least)\n"
                  "lead from one to the other; the label of a row in no group is -1.");
  add_path(*command, "graph", arguments->graph, graph_file)->required();
  add_number(*command, "--distance", *distance, "In the unit of the graph's metric")->required();
  add_output_of_labels(*command, *arguments);
  command->callback([&session, arguments, distance] {
    arguments->distance = *distance;
    session.run = [&session, arguments] { return run_groups(session, *arguments); };
  });
}

void add_export_of_graph(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* const command =
      add_command(app, session, "export", "Write a graph as a sparse matrix of SciPy",
                  "  nearwise graph export graph.nw graph.npz\n\n"
                  "scipy.sparse.load_npz reads it: compressed rows (CSR), with distances as entries.");
  add_path(*command, "graph", arguments->graph, graph_file)->required();
  add_path(*command, "output", arguments->output, "Where the matrix goes: .npz")->required();
  command->add_flag("--mutual", arguments->mutual,
                    "Only edges between rows that have each other as neighbours");
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_export(session, *arguments); };
  });
}

}  // namespace

void add_uses_of_graph(CLI::App& graph, Session& session) {
  add_path_of_graph(graph, session);
  add_components_of_graph(graph, session);
  add_duplicates_of_graph(graph, session);
  add_export_of_graph(graph, session);
}

}  // namespace nearwise::cli
