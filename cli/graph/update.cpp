// nearwise graph merge, add and remove: a new graph from graphs and their vectors.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/graph/graph_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/work.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct UpdateArguments {
  std::filesystem::path graph;
  std::filesystem::path right;                 // merge: the second graph
  std::filesystem::path ids;                   // remove
  std::vector<std::filesystem::path> vectors;  // concatenated
  std::filesystem::path output;                // may be an input graph
  double target_recall = 0.95;
  std::size_t seed = 0;
  ContextArguments context;
};

// The files of vectors, as the last positional, and the options.
void add_update_options(CLI::App& parser, UpdateArguments& arguments,
                        const std::string& vectors_description) {
  add_paths(parser, "vectors", arguments.vectors, vectors_description)->required();
  add_output(parser, arguments.output, "Graph to write: .nw, may be an input");
  add_target_recall(parser, arguments.target_recall,
                    "Recall to reach, measured on a sample; 1: exact search");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

// The vectors of several files: one file is mapped, several are concatenated in memory.
class ConcatenatedVectors {
 public:
  ConcatenatedVectors(const Session& session, const std::vector<std::filesystem::path>& paths);

  RowsView rows() const { return rows_; }
  std::string describe() const;

 private:
  std::vector<VectorFile> files_;
  Matrix<std::byte> copy_;
  RowsView rows_;
};

ConcatenatedVectors::ConcatenatedVectors(const Session& session,
                                         const std::vector<std::filesystem::path>& paths) {
  std::size_t count = 0;
  for (const std::filesystem::path& path : paths) {
    files_.push_back(open_vectors(path));
    const RowsView rows = files_.back().rows();
    const RowsView first = files_.front().rows();
    if (rows.dim() != first.dim() || rows.type() != first.type())
      refuse(session, "vectors must have the same dimension and type, '{}' has {} {} and '{}' {} {}",
             paths.front().string(), first.dim(), name(first.type()), path.string(), rows.dim(),
             name(rows.type()));
    count += rows.rows();
  }
  rows_ = files_.front().rows();
  if (files_.size() == 1) return;
  const std::size_t row_bytes = rows_.dim() * element_size(rows_.type());
  copy_ = Matrix<std::byte>(count, row_bytes);
  std::size_t next = 0;
  for (const VectorFile& file : files_)
    for (std::size_t row = 0; row < file.rows().rows(); ++row)
      std::memcpy(copy_.row(next++).data(), file.rows().row(row), row_bytes);
  rows_ = RowsView(copy_.data(), rows_.type(), count, rows_.dim(), row_bytes);
}

std::string ConcatenatedVectors::describe() const {
  std::string text;
  for (const VectorFile& file : files_)
    text += (text.empty() ? "" : "; ") + describe_input(file.path(), file.rows());
  return text;
}

struct ExpectedVectors {
  std::size_t count = 0;
  bool or_more = false;
};
using Update = std::function<KnnGraph(const Context&, RowsView, const KnnGraphChangeOptions&)>;

// Opens the vectors, checks their number, updates, and writes the graph.
ExitCode run_update(Session& session, const UpdateArguments& arguments, ExpectedVectors expected,
                    const Update& update) {
  require_container(arguments.output, "a graph");
  for (const std::filesystem::path& path : arguments.vectors) check_output(session, arguments.output, {path});
  const ConcatenatedVectors vectors(session, arguments.vectors);
  const std::size_t count = vectors.rows().rows();
  if (expected.or_more ? count < expected.count : count != expected.count)
    refuse(session, "expected {}{} vectors, those of the graph{}, got {}",
           expected.or_more ? "at least " : "", expected.count, expected.or_more ? " and the new ones" : "",
           count);
  Provenance provenance = describe_run(session);
  provenance["base"] = vectors.describe();
  const Context context = open_context(arguments.context, arguments.seed);
  return make_graph({.session = session,
                     .context = context,
                     .vectors = vectors.rows(),
                     .output = arguments.output,
                     .target_recall = arguments.target_recall,
                     .seed = arguments.seed,
                     .provenance = provenance},
                    [&](const Context& own, const OnRound& on_round) {
                      return update(own, vectors.rows(),
                                    {.target_recall = arguments.target_recall, .on_round = on_round});
                    });
}

ExitCode run_merge(Session& session, const UpdateArguments& arguments) {
  const KnnGraph left = open_graph(arguments.graph);
  const KnnGraph right = open_graph(arguments.right);
  return run_update(session, arguments, {.count = left.rows() + right.rows()},
                    [&](const Context& context, RowsView rows, const KnnGraphChangeOptions& options) {
                      return merge_knn_graphs(context, rows, left, right, options);
                    });
}

ExitCode run_add(Session& session, const UpdateArguments& arguments) {
  const KnnGraph graph = open_graph(arguments.graph);
  return run_update(session, arguments, {.count = graph.rows(), .or_more = true},
                    [&](const Context& context, RowsView rows, const KnnGraphChangeOptions& options) {
                      return add_to_knn_graph(context, rows, graph, options);
                    });
}

ExitCode run_remove(Session& session, const UpdateArguments& arguments) {
  const KnnGraph graph = open_graph(arguments.graph);
  const std::vector<Id> ids = read_ids(arguments.ids);
  return run_update(session, arguments, {.count = graph.rows()},
                    [&](const Context& context, RowsView rows, const KnnGraphChangeOptions& options) {
                      return remove_from_knn_graph(context, rows, graph, ids, options);
                    });
}

}  // namespace

void add_graph_merge(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_merge, "merge", "Merge the graphs of two sets of vectors",
                  "  nearwise graph merge left.nw right.nw left.fbin right.fbin -o all.nw\n\n"
                  "Ids of the second graph are increased by the number of vectors of the first.");
  add_path(parser, "left", arguments.graph, "First graph: .nw")->required();
  add_path(parser, "right", arguments.right, "Second graph: .nw")->required();
  add_update_options(parser, arguments,
                     "Vectors of the first graph, then of the second, in one file or several");
}

void add_graph_add(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_add, "add", "Add vectors to a graph",
                  "  nearwise graph add graph.nw base.fbin more.fbin -o graph.nw\n\n"
                  "New vectors are numbered after those of the graph.");
  add_path(parser, "graph", arguments.graph, "Graph: .nw")->required();
  add_update_options(parser, arguments, "Vectors of the graph, then the new ones, in one file or several");
}

void add_graph_remove(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_remove, "remove", "Remove vectors from a graph",
                  "  nearwise graph remove graph.nw ids.txt base.fbin -o smaller.nw\n\n"
                  "The remaining vectors keep their order and are renumbered from 0.");
  add_path(parser, "graph", arguments.graph, "Graph: .nw")->required();
  add_path(parser, "ids", arguments.ids,
           "Row numbers to remove: .npy .ivecs .ibin, or .txt with one per line")
      ->required();
  add_update_options(parser, arguments, "All vectors of the graph, in one file or several");
}

}  // namespace nearwise::cli
